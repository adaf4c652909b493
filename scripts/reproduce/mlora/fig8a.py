"""Figure 8(a): how well Eq. 5, learned from some points of a task's memory, foretells the rest."""

from .. import PAPERS_COMMAND, Braid, Panel, Report, Series
from .settings import BACKBONES

ERROR = 0.0025
EXACT = 1e-6  # drawn for less
NOTHING = 1e-12
BATCHES = {0: "all batches", 2048: "batches of 2,048 tokens and more"}


def rounded(value):
    """Without errors that are those of f64 itself."""
    return 0 if isinstance(value, float) and value < NOTHING else value


def make(braid: Braid, report: Report) -> None:
    """The memory is that of the cost model, one A6000's at its peak; the paper's was measured."""
    figure = report.figure("8a")
    rows = [{key: rounded(value) for key, value in row.items()} for row in braid.papers()["memory_fits"]]
    errors = {(row["backbone"], row["least_tokens"], row["points"]): row["mean_error"] for row in rows}
    points = list(dict.fromkeys(row["points"] for row in rows))
    for backbone, short in BACKBONES.items():
        text = f"{short}: mean error of Eq. 5 from {points[-1]} points"
        figure.claim(text, ERROR, errors[backbone, 0, points[-1]], PAPERS_COMMAND)
    columns = ["backbone", "points", "least_tokens", "mean_error", "worst_error", "command"]
    figure.table(columns, [[*row.values(), PAPERS_COMMAND] for row in rows])
    panels = []
    for least, text in BATCHES.items():
        series = [
            Series(short, [max(EXACT, errors[backbone, least, count]) for count in points])
            for backbone, short in BACKBONES.items()
        ]
        series[0].paper = [ERROR] * len(points)
        title = f"one task on one A6000, int8; {text}"
        panels.append(Panel(title, f"mean error ({EXACT:g}: exact)", points, series, lines=True, logarithmic=True))
    see = "From four points on Eq. 5 is exact where one term rules (right); where two peaks compete it is half a percent off (left)"
    figure.picture("mLoRA figure 8(a): memory by Eq. 5 (crosses: what the paper reports)", panels, see=see)
