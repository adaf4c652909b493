"""mLoRA figures 7 and 11: completion time and throughput against other parallelism."""

from mlora_settings import (
    BACKBONES,
    BATCH,
    EIGHT_3090,
    FOUR_A6000,
    FOUR_A6000_INT8,
    FSDP,
    GSM8K,
    HF_PEFT,
    MLORA,
    ONE_A6000_INT8,
    ONE_F_ONE_B,
    TENSOR,
    Machine,
    compare,
)
from planning import Plan, Planner, fastest, ratio
from report import Panel, Report, Series

SHOWN = {TENSOR: "TP", FSDP: "FSDP", ONE_F_ONE_B: "1F1B", HF_PEFT: "HF-PEFT", MLORA: "mLoRA"}
ACROSS_GPUS = [TENSOR, FSDP, ONE_F_ONE_B, MLORA]
TASKS = [1, 2, 4, 6]
CASES = {  # figure: machine, backbone, policies, tasks
    "7a": (FOUR_A6000, "tinyllama-1.1b", ACROSS_GPUS, TASKS),
    "7b": (FOUR_A6000, "llama2-7b", ACROSS_GPUS, TASKS),
    "7c": (FOUR_A6000, "llama2-13b", ACROSS_GPUS, TASKS),
    "7d": (FOUR_A6000_INT8, "llama2-70b", ACROSS_GPUS, [1, 2, 4]),
    "7e": (EIGHT_3090, "tinyllama-1.1b", ACROSS_GPUS, TASKS),
    "7f": (EIGHT_3090, "llama2-7b", ACROSS_GPUS, TASKS),
    "7g": (EIGHT_3090, "llama2-13b", ACROSS_GPUS, TASKS),
    "7i": (ONE_A6000_INT8, "tinyllama-1.1b", [HF_PEFT, MLORA], [1, 2, 4]),
    "7j": (ONE_A6000_INT8, "llama2-7b", [HF_PEFT, MLORA], [1, 2, 4]),
    "7k": (ONE_A6000_INT8, "llama2-13b", [HF_PEFT, MLORA], [1, 2, 4]),
}
Found = dict[int, dict[str, Plan]]  # by tasks, then policy


def find(planner: Planner, machine: Machine, backbone: str, policies: list[str], tasks: list[int]) -> Found:
    return {count: dict(zip(policies, compare(planner, machine, backbone, count, policies))) for count in tasks}


def reduction(plans: dict[str, Plan], baseline: str) -> float | None:
    """The part of the baseline's completion time that mLoRA saves on the same tasks."""
    faster = ratio(plans[MLORA].step_seconds, plans[baseline].step_seconds)
    return None if faster is None else 1 - faster


def largest_reduction(found: Found, baseline: str) -> tuple[float | None, str]:
    """With so many tasks as serve mLoRA best, and the commands that say so."""
    best = max(found.values(), key=lambda plans: reduction(plans, baseline) or -1)
    return reduction(best, baseline), f"{best[MLORA].command}; {best[baseline].command}"


def claim_figure_7(planner: Planner, report: Report, found: dict[str, Found]) -> None:
    saved = [largest_reduction(found[case], baseline) for case in ("7a", "7b", "7c") for baseline in (TENSOR, FSDP)]
    for text, paper, (ours, command) in (("least", 0.30, min(saved)), ("most", 0.45, max(saved))):
        report.claim("7", f"four GPUs: time saved against TP and FSDP, {text}", paper, ours, command)
    six = found["7a"][6]
    report.claim(
        "7",
        "1.1B, 6 tasks: time saved against TP and FSDP, least",
        0.40,
        min(reduction(six, TENSOR), reduction(six, FSDP)),
        six[MLORA].command,
    )
    without = compare(planner, FOUR_A6000, "tinyllama-1.1b", 6, [f"{MLORA}:batch=off"])[0]
    report.claim(
        "7",
        "1.1B, 6 tasks: BatchLoRA's throughput over none",
        1.10,
        ratio(six[MLORA].effective, without.effective),
        f"{six[MLORA].command}; {without.command}",
    )
    for text, case in (("70B: time saved against 1F1B", "7d"), ("7B at 1 Gbit/s: time saved against 1F1B", "7f")):
        report.claim("7", text, 0.30, *largest_reduction(found[case], ONE_F_ONE_B))
    for case, paper in {"7i": 0.08, "7j": 0.05, "7k": 0.02}.items():
        ours, command = largest_reduction(found[case], HF_PEFT)
        report.claim("7", f"one GPU, {BACKBONES[CASES[case][1]]}: time saved against PEFT", paper, ours, command)


def seconds_a_task(plan: Plan, tasks: int, bound: bool = False) -> float | None:
    """Of one step of each task."""
    seconds = plan.bound_seconds if bound else plan.step_seconds
    return seconds / tasks if seconds else None


def figure_7(planner: Planner, report: Report) -> None:
    found = {figure: find(planner, *case) for figure, case in CASES.items()}
    claim_figure_7(planner, report, found)
    report.plans(
        "figure7",
        ["figure", "gpu", "backbone", "tasks"],
        [
            ([figure, CASES[figure][0].gpu, CASES[figure][1], tasks], plan)
            for figure, by_tasks in found.items()
            for tasks, plans in by_tasks.items()
            for plan in plans.values()
        ],
    )
    panels = [
        Panel(
            f"({figure[-1]}) {machine.gpus} {machine.gpu} {machine.dtype}, {backbone}",
            "seconds a task's step",
            tasks,
            [
                Series(
                    SHOWN[policy],
                    [seconds_a_task(found[figure][count][policy], count) for count in tasks],
                    [seconds_a_task(found[figure][count][policy], count, True) for count in tasks],
                )
                for policy in policies
            ],
            logarithmic=machine is EIGHT_3090,
        )
        for figure, (machine, backbone, policies, tasks) in CASES.items()
    ]
    title = "mLoRA figure 7: completion time by number of tasks (thin: at the proven lower bound)"
    report.picture("figure7_four_gpus", "7", title, panels[:4])
    report.picture("figure7_others", "", title, panels[4:])
    figure_11(report, {CASES[case][1]: found[case] for case in ("7a", "7b", "7c")})


def figure_11(report: Report, found: dict[str, Found]) -> None:
    """The highest throughput of each policy over all numbers of tasks."""
    best = {
        backbone: {policy: fastest([plans[policy] for plans in by_tasks.values()]) for policy in ACROSS_GPUS}
        for backbone, by_tasks in found.items()
    }
    for baseline, paper in {FSDP: (1.75, 1.35, None), TENSOR: (1.86, 1.58, 1.46)}.items():
        for (backbone, plans), value in zip(best.items(), paper):
            if value:
                report.claim(
                    "11",
                    f"{BACKBONES[backbone]}: throughput over {SHOWN[baseline]}",
                    value,
                    ratio(plans[MLORA].effective, plans[baseline].effective),
                    f"{plans[MLORA].command}; {plans[baseline].command}",
                )
    report.plans(
        "figure11", ["backbone"], [([backbone], plan) for backbone, plans in best.items() for plan in plans.values()]
    )
    report.picture(
        "figure11",
        "11",
        "mLoRA figure 11: highest throughput on four A6000s (thin: proven lower bound)",
        [
            Panel(
                f"{backbone}, {BATCH} x {GSM8K.max_length} tokens a task",
                "tokens/s",
                [SHOWN[each] for each in ACROSS_GPUS],
                [
                    Series(
                        "tokens/s",
                        [plans[policy].effective for policy in ACROSS_GPUS],
                        [plans[policy].effective_bound for policy in ACROSS_GPUS],
                    )
                ],
            )
            for backbone, plans in best.items()
        ],
    )
