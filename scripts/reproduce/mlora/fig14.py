"""Figure 14: what starting kernels takes of a step."""

from .. import PAPERS_COMMAND, Braid, Panel, Report, Series
from .launches import PEFT, SHARES, SHOWN, TASKS, Launches, launches
from .settings import BACKBONES

MEASURES = ["adapter_launches", "launches", "launch_seconds", "kernel_seconds", "step_seconds", "launch_share"]


def panels(found: Launches, tasks: int) -> list[Panel]:
    """Of each task's step, as the figure shows them; a step is bounded by its kernels, which wait for no launch."""

    def series(value, bound=None) -> list[Series]:
        rows = {runs: [found[backbone, runs, tasks] for backbone in BACKBONES] for runs in SHOWN}
        return [
            Series(name, [value(row) for row in rows[runs]], [bound(row) for row in rows[runs]] if bound else None)
            for runs, name in SHOWN.items()
        ]

    def kernels(row: dict) -> float:
        return row["kernel_seconds"] / tasks

    steps = series(lambda row: (row["launch_seconds"] + row["kernel_seconds"]) / tasks, kernels)
    shares = series(lambda row: row["launch_share"])
    shares[list(SHOWN).index(PEFT)].paper = list(SHARES.values())
    groups = list(BACKBONES.values())
    return [
        Panel(f"(a) a task's step with each launch waited for, {tasks} tasks", "seconds", groups, steps),
        Panel("(b) share of launches", "share of the step", groups, shares),
        Panel("(c) kernels", "seconds", groups, series(kernels)),
    ]


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("14")
    found = launches(braid)
    for backbone, short in BACKBONES.items():
        share = found[backbone, PEFT, 1]["launch_share"]
        figure.claim(f"{short}: share of launches in PEFT's step", SHARES[backbone], share, PAPERS_COMMAND)
    rows = [[*key, *(row[measure] for measure in MEASURES), PAPERS_COMMAND] for key, row in found.items()]
    figure.table(["backbone", "runs", "tasks", *MEASURES, "command"], rows)
    title = "mLoRA figure 14: launches on one A6000, int8 (thin: kernels alone; crosses: the paper)"
    see = "Launches are 1 to 4 % of a step here, 4 to 10 % in the paper"
    figure.picture(title, panels(found, TASKS[-1]), see=see)
