"""mLoRA figure 8(a): how well Eq. 5, learned from some points of a task's memory, foretells the rest."""

from mlora_launches import COMMAND
from mlora_settings import BACKBONES
from planning import Planner
from report import Panel, Report, Series

PAPER_ERROR = 0.0025
BATCHES = {0: "all batches", 2048: "batches of 2,048 tokens and more"}


def figure_8a(planner: Planner, report: Report) -> None:
    """The memory is that of the cost model, one A6000's at its peak; the paper's was measured."""
    rows = planner.papers()["memory_fits"]
    errors = {(row["backbone"], row["least_tokens"], row["points"]): row["mean_error"] for row in rows}
    points = list(dict.fromkeys(row["points"] for row in rows))
    for backbone, short in BACKBONES.items():
        text = f"{short}: mean error of Eq. 5 from {points[-1]} points"
        report.claim("8a", text, PAPER_ERROR, errors[backbone, 0, points[-1]], COMMAND)
    report.table(
        "figure8a",
        ["backbone", "points", "least_tokens", "mean_error", "worst_error", "command"],
        [[*row.values(), COMMAND] for row in rows],
    )
    report.picture(
        "figure8a",
        "8a",
        "mLoRA figure 8(a): memory by Eq. 5 (crosses: what the paper reports)",
        [
            Panel(
                f"one task on one A6000, int8; {text}",
                "mean error",
                points,
                [
                    Series(
                        short,
                        [errors[backbone, least, count] for count in points],
                        paper=[PAPER_ERROR] * len(points) if backbone == "tinyllama-1.1b" else None,
                    )
                    for backbone, short in BACKBONES.items()
                ],
                lines=True,
                logarithmic=True,
            )
            for least, text in BATCHES.items()
        ],
    )
