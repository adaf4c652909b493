"""Figure 7: GPU-seconds of a step of all tasks."""

from .. import Braid, Panel, Plan, Report, Series, commands, ratio
from .settings import LOBRA, SETUPS, TASK_FUSED, Setup, alone, sum_of

SHOWN = ["Task-Fused", "Task-Sequential", "LobRA-Sequential", "LobRA"]
# The reductions of figures 8 and 7; the text has them as the least and the most of the three.
LEAST_SAVED, MOST_SAVED = 0.4503, 0.6067
LEAST_OVER_SEQUENTIAL, MOST_OVER_SEQUENTIAL = 1.32, 1.44
Found = dict[str, tuple[float | None, list[Plan]]]


def find(braid: Braid, setup: Setup) -> Found:
    fused, lobra = setup.compare(braid, [TASK_FUSED, LOBRA])
    found: Found = {"Task-Fused": (setup.gpu_seconds(fused), [fused]), "LobRA": (setup.gpu_seconds(lobra), [lobra])}
    for name, policy in (("Task-Sequential", TASK_FUSED), ("LobRA-Sequential", LOBRA)):
        plans = alone(braid, setup, policy)
        found[name] = sum_of(setup, plans), plans
    return {name: found[name] for name in SHOWN}


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("7")
    found = {name: find(braid, setup) for name, setup in SETUPS.items()}
    saved = {}
    for name, by_way in found.items():
        saved[name] = 1 - ratio(by_way["LobRA"][0], by_way["Task-Fused"][0])
    least, most = min(saved, key=saved.get), max(saved, key=saved.get)
    for text, paper, name in (("least", LEAST_SAVED, least), ("most", MOST_SAVED, most)):
        told = commands(*found[name]["LobRA"][1], *found[name]["Task-Fused"][1])
        figure.claim(f"GPU-seconds saved against Task-Fused, {text} ({name})", paper, saved[name], told)
    over = {name: ratio(by_way["LobRA-Sequential"][0], by_way["LobRA"][0]) for name, by_way in found.items()}
    least, most = min(over, key=over.get), max(over, key=over.get)
    for text, paper, name in (("least", LEAST_OVER_SEQUENTIAL, least), ("most", MOST_OVER_SEQUENTIAL, most)):
        command = commands(*found[name]["LobRA"][1])
        figure.claim(f"LobRA over LobRA-Sequential, {text} ({name})", paper, over[name], command)
    rows = [
        ([backbone, way, seconds, SETUPS[backbone].tasks[index] if len(plans) > 1 else "all"], plan)
        for backbone, by_way in found.items()
        for way, (seconds, plans) in by_way.items()
        for index, plan in enumerate(plans)
    ]
    figure.plans(["backbone", "way", "gpu_seconds_of_all", "task"], rows)
    panels = [
        Panel(
            f"{backbone}: {len(SETUPS[backbone].tasks)} tasks, {SETUPS[backbone].gpus} {SETUPS[backbone].gpu}",
            "GPU-seconds a step of all tasks",
            [""],
            [Series(way, [seconds]) for way, (seconds, _) in by_way.items()],
        )
        for backbone, by_way in found.items()
    ]
    see = "LobRA needs the fewest GPU-seconds of 32B and 70B; of 7B LobRA-Sequential needs fewer"
    figure.picture("LobRA figure 7: GPU-seconds of a step of all tasks", panels, see=see)
