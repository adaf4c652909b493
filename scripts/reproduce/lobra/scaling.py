"""The appendix's study of scaling: GPU-seconds of a step by the number of GPUs and of tasks, 70B."""

from .. import Braid, Panel, Report, Series, ratio
from .settings import DATASETS, FOUR, LOBRA, SEVENTY_B, TASK_FUSED

POLICIES = {"Task-Fused": TASK_FUSED, "LobRA": LOBRA}
NODES = [2, 4, 8]
BY_GPUS = {"Task-Fused": [1.00, 1.08, 1.12], "LobRA": [1.00, 0.65, 0.59]}
TASKS = [4, 8, 12, 16]
BY_TASKS = {"Task-Fused": [1.00, 2.06, 3.18, 4.41], "LobRA": [0.52, 0.97, 1.47, 2.02]}


def tasks_of(count: int) -> tuple[str, ...]:
    """The study's four, then the others; sixteen are the twelve and its four again."""
    names = FOUR + [name for name in DATASETS if name not in FOUR] + FOUR
    return tuple(names[:count])


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("scaling", "scaling")
    rows, series = [], {"gpus": [], "tasks": []}
    first = None
    for name, policy in POLICIES.items():
        by_gpus = [SEVENTY_B.compare(braid, [policy], tuple(FOUR), nodes)[0] for nodes in NODES]
        seconds = [plan.step_seconds and plan.step_seconds * nodes * 8 for plan, nodes in zip(by_gpus, NODES)]
        # Where the fewest GPUs have no plan the next are the measure.
        base = next((place for place, value in enumerate(seconds) if value), 0)
        scale = BY_GPUS[name][base]
        relative = [value and scale * value / seconds[base] for value in seconds]
        for plan, nodes, value, paper, own in zip(by_gpus, NODES, seconds, BY_GPUS[name], relative):
            rows.append((["GPUs", nodes * 8, 4, value, own, paper], plan))
        figure.claim(
            f"{name}: GPU-seconds on 64 GPUs over those on {8 * NODES[base]}",
            BY_GPUS[name][-1] / scale,
            relative[-1] and relative[-1] / scale,
            by_gpus[-1].command,
        )
        series["gpus"].append(Series(name, relative, paper=BY_GPUS[name]))
        by_tasks = [SEVENTY_B.compare(braid, [policy], tasks_of(count))[0] for count in TASKS]
        seconds = [SEVENTY_B.gpu_seconds(plan) for plan in by_tasks]
        first = first or seconds[0]
        relative = [ratio(value, first) for value in seconds]
        for plan, count, value, paper, own in zip(by_tasks, TASKS, seconds, BY_TASKS[name], relative):
            rows.append((["tasks", 64, count, value, own, paper], plan))
            figure.claim(f"{name}: {count} tasks' GPU-seconds over Task-Fused's of 4", paper, own, plan.command)
        series["tasks"].append(Series(name, relative, paper=BY_TASKS[name]))
    figure.plans(["varied", "gpus", "tasks", "gpu_seconds", "relative", "the_papers"], rows)
    title = "LobRA, appendix: scaling of 70B on A800s (crosses: the paper's)"
    panels = [
        Panel("4 tasks by GPUs", "GPU-seconds, relative", [8 * nodes for nodes in NODES], series["gpus"], lines=True),
        Panel("64 GPUs by tasks", "GPU-seconds, relative", TASKS, series["tasks"], lines=True),
    ]
    see = "LobRA grows slower with tasks than Task-Fused; with GPUs neither falls here, where the paper's LobRA does"
    figure.picture(title, panels, see=see)
