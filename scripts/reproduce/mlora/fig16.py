"""Figure 16: what pruning BatchLoRA's graph saves on one GPU, as tasks are added."""

from .. import Braid, Panel, Report, saved, series_of
from .settings import MLORA, ONE_A6000_INT8, UNPRUNED

TASKS = [1, 2, 4]
POLICIES = [MLORA, UNPRUNED]
SAVED = {"latency": ("step_seconds", 0.17), "memory": ("peak_gigabytes", 0.07)}  # of the most tasks
PANELS = {"step": ("seconds", "step_seconds"), "memory": ("GB", "peak_gigabytes")}


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("16")
    found = {tasks: ONE_A6000_INT8.compare(braid, "tinyllama-1.1b", tasks, POLICIES) for tasks in TASKS}
    for text, (measure, paper) in SAVED.items():
        figure.claim(f"graph pruning: {text} saved, four tasks", paper, *saved(*found[TASKS[-1]], measure))
    figure.plans(["tasks"], [([tasks], plan) for tasks, plans in found.items() for plan in plans])
    panels = []
    for title, (unit, measure) in PANELS.items():
        series = [
            series_of(policy, [plans[index] for plans in found.values()], measure)
            for index, policy in enumerate(POLICIES)
        ]
        panels.append(Panel(title, unit, TASKS, series))
    title = "mLoRA figure 16: graph pruning, 1.1B on one A6000 (thin: proven lower bound; of memory: held all the time)"
    see = "Pruning the graph saves 4 % of the time of four tasks here, and no memory"
    figure.picture(title, panels, see=see)
