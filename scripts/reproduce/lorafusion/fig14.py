"""Figure 14: throughput of four adapters on H100s."""

from .. import Braid, Report
from .settings import EIGHT_B, MLORA, SEVENTY_B, THIRTY_TWO_B
from .throughput import claim, draw, find, leads, megatron

SETUPS = [EIGHT_B, THIRTY_TWO_B, SEVENTY_B]
BY_MODEL = {"llama3.1-8b": (1.26, 1.43), "qwen2.5-32b": (1.42, 1.64), "llama3.1-70b": (1.64, 1.81)}  # mean, best


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("14")
    found = find(braid, SETUPS)
    backbones = list(BY_MODEL)
    over_megatron = leads(found, megatron, backbones)
    claim(figure, "over Megatron-LM", 1.47, 1.96, over_megatron)
    claim(figure, "over mLoRA", 1.29, 1.46, leads(found, lambda plans: plans[MLORA], backbones))
    for backbone, papers in BY_MODEL.items():
        own = {key: cells for key, cells in over_megatron.items() if key[0] == backbone}
        claim(figure, f"{backbone} over Megatron-LM", *papers, own)
    draw(figure, SETUPS, found, "LoRAFusion figure 14: four adapters on H100s (thin: at the proven lower bound)")
