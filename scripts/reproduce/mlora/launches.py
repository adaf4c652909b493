"""Kernels launched, with tasks batched or apart, with the graph pruned or not: of section 3.3.2 and figure 14."""

from .. import Braid

PEFT, BATCHED, WHOLE_GRAPH = "peft", "batched", "batched, graph not pruned"
SHOWN = {PEFT: "PEFT", BATCHED: "BatchLoRA", WHOLE_GRAPH: "BatchLoRA, not pruned"}
TASKS = [1, 2, 4]
SHARES = {"tinyllama-1.1b": 0.10, "llama2-7b": 0.075, "llama2-13b": 0.04}  # of a step, by figure 14
Launches = dict[tuple[str, str, int], dict]  # by backbone, how tasks run, how many


def launches(braid: Braid) -> Launches:
    return {(row["backbone"], row["runs"], row["tasks"]): row for row in braid.papers()["launches"]}


def alpha_and_beta(found: Launches, backbone: str) -> tuple[float, float]:
    one = found[backbone, PEFT, 1]
    return one["launches"] - one["adapter_launches"], one["adapter_launches"]
