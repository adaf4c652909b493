"""Figure 16: what each part contributes."""

from .. import Braid, Panel, Report, series_of
from .settings import LLAMA_7B, MUXTUNE, figure_16_load, lost, microbatches

BATCH = 128
PARTS = {
    "task fusion": "fusion=off",
    "operator orchestration": "orchestration=off",
    "data alignment": "alignment=zero",
}
PAPER = {"light": (0.361, 0.303, 0.225), "heavy": (0.0625, 0.251, 0.343)}  # lost without each part
KINDS = {"as printed": f"{MUXTUNE}:fusion=literal", "own fusion": MUXTUNE}


def make(braid: Braid, report: Report) -> None:
    """Twice: with Eq. 6 as the paper prints it, and with the planner's own fusion, which arranges itself around what is
    left out."""
    figure = report.figure("16")
    panels, rows = [], []
    for load, paper in PAPER.items():
        series = []
        for kind, whole in KINDS.items():
            parts = [f"{MUXTUNE if 'fusion' in option else whole}:{option}" for option in PARTS.values()]
            plans = LLAMA_7B.compare(braid, figure_16_load(load, BATCH), [whole, *parts], microbatches(BATCH))
            rows += [([load, kind], plan) for plan in plans]
            series.append(series_of(kind, plans))
            for part, share, plan in zip(PARTS, paper, plans[1:]):
                figure.claim(f"{load}, {kind}: lost without {part}", share, *lost(plans[0], plan))
        panels.append(Panel(load, "effective tokens/s", ["all", "no fusion", "no orch.", "no align."], series))
    figure.plans(["load", "fusion"], rows)
    see = "With Eq. 6 as printed alignment is what matters; with the planner's own fusion no part is worth more than a tenth"
    figure.picture("MuxTune figure 16: parts left out (thin: at the proven lower bound)", panels, see=see)
