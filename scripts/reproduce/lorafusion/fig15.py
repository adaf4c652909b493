"""Figure 15: throughput of four adapters on L40S."""

from .. import Braid, Report
from .settings import Setup
from .throughput import claim, draw, find, leads, megatron

PCIE = {"bandwidth_gbs": 25, "latency_us": 10}
SETUPS = [Setup("llama3.1-8b", 1, "l40s"), Setup("qwen2.5-32b", 4, "l40s", PCIE)]
MEANS = {"llama3.1-8b": 1.19, "qwen2.5-32b": 1.91}


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("15")
    found = find(braid, SETUPS)
    for backbone, paper in MEANS.items():
        claim(figure, f"{backbone} over Megatron-LM", paper, None, leads(found, megatron, [backbone]))
    draw(figure, SETUPS, found, "LoRAFusion figure 15: four adapters on L40S (thin: at the proven lower bound)")
