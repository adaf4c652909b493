"""Figure 15: throughput on H100s."""

from dataclasses import replace

from .. import Braid, Report
from .settings import GPT_2_7B, LLAMA_7B, LLAMA_13B_ONE_NODE
from .throughput import make_grid

SETUPS = [replace(setup, gpu="h100", link="nvswitch") for setup in (GPT_2_7B, LLAMA_7B, LLAMA_13B_ONE_NODE)]
CLAIMS = {"uniform": {"nemo": 5.29, "sl-peft": 2.31}, "non-uniform": {"nemo": 3.69, "sl-peft": 1.94}}


def make(braid: Braid, report: Report) -> None:
    title = "MuxTune figure 15: throughput on H100s (thin: at the proven lower bound)"
    make_grid(braid, report.figure("15"), SETUPS, CLAIMS, title)
