"""Figure 7: completion time against other parallelism, by number of tasks."""

from .. import Braid, Figure, Panel, Plan, Report, Series, over, ratio, saved
from .settings import BACKBONES, EIGHT_3090, FOUR_A6000, FOUR_A6000_INT8, FSDP, HF_PEFT, MLORA, ONE_A6000_INT8
from .settings import ONE_F_ONE_B, SHOWN, TENSOR, UNBATCHED

ACROSS_GPUS = [TENSOR, FSDP, ONE_F_ONE_B, MLORA]
ON_ONE_GPU = [HF_PEFT, MLORA]
CASES = {  # figure: machine, backbone, policies, tasks
    "7a": (FOUR_A6000, "tinyllama-1.1b", ACROSS_GPUS, [1, 2, 4, 6]),
    "7b": (FOUR_A6000, "llama2-7b", ACROSS_GPUS, [1, 2, 4, 6]),
    "7c": (FOUR_A6000, "llama2-13b", ACROSS_GPUS, [1, 2, 4, 6]),
    "7d": (FOUR_A6000_INT8, "llama2-70b", ACROSS_GPUS, [1, 2, 4]),
    "7e": (EIGHT_3090, "tinyllama-1.1b", ACROSS_GPUS, [1, 2, 4, 6]),
    "7f": (EIGHT_3090, "llama2-7b", ACROSS_GPUS, [1, 2, 4, 6]),
    "7g": (EIGHT_3090, "llama2-13b", ACROSS_GPUS, [1, 2, 4, 6]),
    "7i": (ONE_A6000_INT8, "tinyllama-1.1b", ON_ONE_GPU, [1, 2, 4]),
    "7j": (ONE_A6000_INT8, "llama2-7b", ON_ONE_GPU, [1, 2, 4]),
    "7k": (ONE_A6000_INT8, "llama2-13b", ON_ONE_GPU, [1, 2, 4]),
}
# Completion time saved; and throughput by BatchLoRA.
LEAST_SAVED, MOST_SAVED, LEAST_SAVED_OF_SIX, OVER_ONE_F_ONE_B = 0.30, 0.45, 0.40, 0.30
BATCHING = 1.10
OVER_PEFT = {"7i": 0.08, "7j": 0.05, "7k": 0.02}
Found = dict[int, dict[str, Plan]]  # by tasks, then policy


def find(braid: Braid, case: str) -> Found:
    machine, backbone, policies, tasks = CASES[case]
    return {count: dict(zip(policies, machine.compare(braid, backbone, count, policies))) for count in tasks}


def most_saved(found: Found, baseline: str) -> tuple[float | None, str]:
    """With so many tasks as serve mLoRA best, and the commands that say so."""
    return max((saved(plans[MLORA], plans[baseline]) for plans in found.values()), key=lambda cells: cells[0] or -1)


def claim(braid: Braid, figure: Figure, found: dict[str, Found]) -> None:
    cells = [most_saved(found[case], baseline) for case in ("7a", "7b", "7c") for baseline in (TENSOR, FSDP)]
    for text, paper, extreme in (("least", LEAST_SAVED, min(cells)), ("most", MOST_SAVED, max(cells))):
        figure.claim(f"four GPUs: time saved against TP and FSDP, {text}", paper, *extreme)
    six = found["7a"][6]
    least = min(saved(six[MLORA], six[baseline])[0] for baseline in (TENSOR, FSDP))
    text = "1.1B, 6 tasks: time saved against TP and FSDP, least"
    figure.claim(text, LEAST_SAVED_OF_SIX, least, six[MLORA].command)
    unbatched = FOUR_A6000.compare(braid, "tinyllama-1.1b", 6, [UNBATCHED])[0]
    figure.claim("1.1B, 6 tasks: BatchLoRA's throughput over none", BATCHING, *over(six[MLORA], unbatched))
    for text, case in (("70B: time saved against 1F1B", "7d"), ("7B at 1 Gbit/s: time saved against 1F1B", "7f")):
        figure.claim(text, OVER_ONE_F_ONE_B, *most_saved(found[case], ONE_F_ONE_B))
    for case, paper in OVER_PEFT.items():
        text = f"one GPU, {BACKBONES[CASES[case][1]]}: time saved against PEFT"
        figure.claim(text, paper, *most_saved(found[case], HF_PEFT))


def panel(case: str, found: Found) -> Panel:
    machine, backbone, policies, tasks = CASES[case]
    series = [
        Series(
            SHOWN[policy],
            [ratio(found[count][policy].step_seconds, count) for count in tasks],
            [ratio(found[count][policy].bound_seconds, count) for count in tasks],
        )
        for policy in policies
    ]
    title = f"({case[-1]}) {machine.gpus} {machine.gpu} {machine.dtype}, {backbone}"
    return Panel(title, "seconds a task's step", tasks, series, logarithmic=machine is EIGHT_3090)


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("7")
    found = {case: find(braid, case) for case in CASES}
    claim(braid, figure, found)
    rows = [
        ([case, CASES[case][0].gpu, CASES[case][1], tasks], plan)
        for case, by_tasks in found.items()
        for tasks, plans in by_tasks.items()
        for plan in plans.values()
    ]
    figure.plans(["figure", "gpu", "backbone", "tasks"], rows)
    panels = [panel(case, by_tasks) for case, by_tasks in found.items()]
    title = "mLoRA figure 7: completion time by number of tasks (thin: at the proven lower bound)"
    see = "From two tasks on mLoRA is the fastest in every panel"
    figure.picture(title, panels[:4], "figure7_four_gpus", see=see)
    see = "At 1 Gbit/s only pipelines are of use; on one GPU batching saves a few percent"
    report.figure("", "figure7_others").picture(title, panels[4:], see=see)
