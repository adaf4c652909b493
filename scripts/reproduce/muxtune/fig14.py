"""Figure 14: throughput on A40s."""

from .. import Braid, Report
from .settings import GPT_2_7B, LLAMA_7B, LLAMA_13B, OPT_30B
from .throughput import make_grid

SETUPS = [GPT_2_7B, LLAMA_7B, LLAMA_13B, OPT_30B]
CLAIMS = {
    "uniform": {"hf-peft": 2.33, "nemo": 1.87, "sl-peft": 1.64},
    "non-uniform": {"hf-peft": 2.23, "nemo": 1.83, "sl-peft": 1.85},
}


def make(braid: Braid, report: Report) -> None:
    title = "MuxTune figure 14: throughput on A40s (thin: at the proven lower bound)"
    make_grid(braid, report.figure("14"), SETUPS, CLAIMS, title)
