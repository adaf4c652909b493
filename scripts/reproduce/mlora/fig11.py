"""Figure 11: the highest throughput of each kind of parallelism over all numbers of tasks of figure 7."""

from .. import Braid, Panel, Report, fastest, over, series_of
from .fig7 import ACROSS_GPUS, CASES, find
from .settings import BACKBONES, BATCH, FSDP, GSM8K, MLORA, SHOWN, TENSOR

# mLoRA over each, by backbone.
PAPER = {
    FSDP: {"tinyllama-1.1b": 1.75, "llama2-7b": 1.35},
    TENSOR: {"tinyllama-1.1b": 1.86, "llama2-7b": 1.58, "llama2-13b": 1.46},
}


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("11")
    best = {}
    for case in ("7a", "7b", "7c"):
        found = find(braid, case).values()
        best[CASES[case][1]] = {policy: fastest([plans[policy] for plans in found]) for policy in ACROSS_GPUS}
    for baseline, papers in PAPER.items():
        for backbone, paper in papers.items():
            text = f"{BACKBONES[backbone]}: throughput over {SHOWN[baseline]}"
            figure.claim(text, paper, *over(best[backbone][MLORA], best[backbone][baseline]))
    figure.plans(["backbone"], [([backbone], plan) for backbone, plans in best.items() for plan in plans.values()])
    panels = [
        Panel(
            f"{backbone}, {BATCH} x {GSM8K.max_length} tokens a task",
            "tokens/s",
            [SHOWN[policy] for policy in ACROSS_GPUS],
            [series_of("tokens/s", list(plans.values()))],
        )
        for backbone, plans in best.items()
    ]
    see = "mLoRA serves the most tokens with every backbone"
    figure.picture("mLoRA figure 11: highest throughput on four A6000s (thin: proven lower bound)", panels, see=see)
