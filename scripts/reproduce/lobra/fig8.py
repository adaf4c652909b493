"""Figure 8: what unlike replicas, balanced dispatch and dynamic bucketing contribute, 7B."""

from .. import Braid, Panel, Report, Series, saved
from .settings import LOBRA, SEVEN_B, TASK_FUSED

PARTS = {  # policy, and what the paper saves of Task-Fused's GPU-seconds
    "Task-Fused": (f"{TASK_FUSED}:bucketing=fixed", None),
    "unlike replicas": (f"{LOBRA}:dispatch=by_length:bucketing=fixed", 0.1894),
    "balanced dispatch": (f"{LOBRA}:bucketing=fixed", 0.3665),
    "dynamic bucketing": (LOBRA, 0.4503),
}


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("8")
    plans = dict(zip(PARTS, SEVEN_B.compare(braid, [policy for policy, _ in PARTS.values()])))
    for part, (_, paper) in PARTS.items():
        if paper is None:
            continue
        figure.claim(
            f"with {part}: GPU-seconds saved against Task-Fused", paper, *saved(plans[part], plans["Task-Fused"])
        )
    figure.plans(["with"], [([part], plan) for part, plan in plans.items()])
    first = SEVEN_B.gpu_seconds(plans["Task-Fused"])
    values = [SEVEN_B.gpu_seconds(plan) for plan in plans.values()]
    paper = [None if first is None else first * (1 - (part or 0)) for _, part in PARTS.values()]
    panel = Panel(
        "7B, 6 tasks, 16 A100-40", "GPU-seconds a step of all tasks", list(PARTS), [Series("ours", values, paper=paper)]
    )
    see = "Unlike replicas are most of what LobRA saves"
    figure.picture("LobRA figure 8: its parts, one after another (crosses: the paper's)", [panel], see=see)
