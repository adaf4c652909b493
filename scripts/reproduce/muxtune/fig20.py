"""Figure 20: chunks against padding every sequence to the longest."""

from .. import Braid, Panel, Report, over, series_of
from .settings import LLAMA_7B, MUXTUNE, SL_PEFT, table_2

TASKS = range(1, 9)
# Chunk sizes, and how many times as much as SL-PEFT's is computed and effective at most. The paper swaps WL-B's.
CASES = {"WL-A": (64, {"overall": 2.33, "effective": 3.59}), "WL-B": (128, {"overall": 2.57, "effective": 3.77})}
MEASURES = {"overall": "computed", "effective": "effective"}
SERIES = {  # which of both, and its measure
    "SL-PEFT, overall": (0, "computed"),
    "SL-PEFT-E": (0, "effective"),
    "MuxTune, overall": (1, "computed"),
    "MuxTune-E": (1, "effective"),
}


def make(braid: Braid, report: Report) -> None:
    """The planner splits the tasks into hTasks as it sees fit; the paper has all of them in one."""
    figure = report.figure("20")
    rows, panels = [], []
    for name, (chunk, claims) in CASES.items():
        policies = [SL_PEFT, f"{MUXTUNE}:chunk={chunk}"]
        found = {tasks: LLAMA_7B.compare(braid, table_2(name, tasks), policies, 1) for tasks in TASKS}
        rows += [([name, chunk, tasks], plan) for tasks, both in found.items() for plan in both]
        for kind, paper in claims.items():
            ratios = [over(ours, padded, MEASURES[kind]) for padded, ours in found.values()]
            note = " (swapped)" if name == "WL-B" else ""
            largest = max(ratios, key=lambda cells: cells[0] or 0)
            figure.claim(f"chunk {chunk}, {kind} over SL-PEFT, up to{note}", paper, *largest)
        series = [
            series_of(text, [both[which] for both in found.values()], measure)
            for text, (which, measure) in SERIES.items()
        ]
        panels.append(Panel(f"{name}, chunk {chunk}", "tokens/s", list(found), series, lines=True))
    figure.plans(["workload", "chunk", "tasks"], rows)
    figure.picture("MuxTune figure 20: chunks (thin: at the proven lower bound)", panels)
