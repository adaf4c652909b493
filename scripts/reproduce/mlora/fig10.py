"""Figure 10: what overlapping communication gains, by replay and by the formula of section 3.2.2."""

from .. import Braid, Panel, Plan, Report, Series, over, ratio
from .settings import BACKBONES, BATCH, FOUR_A6000, FOUR_A6000_STAGED, GSM8K, UNBATCHED, Machine, workload

TASKS = FOUR_A6000.gpus  # as many as stages
HIDDEN = {"tinyllama-1.1b": 2048, "llama2-7b": 4096, "llama2-13b": 5120}
BYTES_A_NUMBER = 4
OVERLAPPED_AND_APART = [UNBATCHED, f"{UNBATCHED}:overlap=off"]
GAINS = {"tinyllama-1.1b": 1.60, "llama2-7b": 1.20, "llama2-13b": 1.16}


def gain_by_formula(braid: Braid, machine: Machine, backbone: str, plan: Plan) -> float:
    """2 C_S + 2 C_R + D_F + D_B over max{C_S, C_R, D_F} + max{C_S, C_R, D_B}, with the busy time of a plan as D_F + D_B
    and the link's own speed as C. D_B is twice D_F less the weights' gradients: taken as equal."""
    microbatches = TASKS * plan.microbatches
    inputs = ["--workload", workload(braid, backbone, TASKS), "--cluster", machine.cluster(braid)]
    link = braid.ask("plan", *inputs, "--policy", "mlora")["cluster"]["intra_node"]
    computing = plan.busy_share * plan.step_seconds / microbatches
    tokens = TASKS * BATCH * GSM8K.max_length / microbatches
    message = tokens * HIDDEN[backbone] * BYTES_A_NUMBER / link["bandwidth_bytes_per_second"]
    sending = message + link["latency_seconds"]
    return (4 * sending + computing) / (2 * max(sending, computing / 2))


def make(braid: Braid, report: Report) -> None:
    """Replays of the same tasks with messages beside the computing and in its way."""
    figure = report.figure("10")
    rows, panels = [], []
    for machine in (FOUR_A6000_STAGED, FOUR_A6000):
        gains, bounds, formulas = [], [], []
        for backbone, short in BACKBONES.items():
            overlapped, apart = machine.compare(braid, backbone, TASKS, OVERLAPPED_AND_APART)
            gain, told = over(overlapped, apart)
            gains.append(gain)
            bounds.append(ratio(overlapped.effective_bound, apart.effective))
            formulas.append(gain_by_formula(braid, machine, backbone, overlapped))
            rows += [([machine.link, backbone, gain, formulas[-1]], plan) for plan in (overlapped, apart)]
            if machine is FOUR_A6000_STAGED:
                figure.claim(f"{short}: overlap over none, {machine.link}", GAINS[backbone], gain, told)
        paper = list(GAINS.values()) if machine is FOUR_A6000_STAGED else None
        series = [Series("replayed", gains, bounds, paper), Series("by the formula of section 3.2.2", formulas)]
        title, groups = f"four A6000s, {machine.link}", list(BACKBONES.values())
        panels.append(Panel(title, "throughput, over no overlap", groups, series))
    figure.plans(["link", "backbone", "gain", "gain_by_formula"], rows)
    title = "mLoRA figure 10: overlapping communication (thin: at the proven lower bound; crosses: the paper)"
    see = "Overlap is worth 6 to 34 % over links through the hosts, 1 to 2 % over PCIe"
    figure.picture(title, panels, see=see)
