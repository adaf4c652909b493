"""The chunk size that MuxTune's rule gives, and the one that is fastest: rows of varied.csv."""

import random
from collections.abc import Iterator
from dataclasses import replace

from .. import Braid, Dataset, over, saved
from .settings import LLAMA_13B_ONE_NODE, LLAMA_7B, MUXTUNE, OPT_30B, WORKLOADS, Load, table_2

PAIR = [MUXTUNE, f"{MUXTUNE}:chunk=searched"]
RANDOM_LOADS, SEED = 10, 17
SHORT = list(range(32, 1025, 16))
POWERS = [64, 128, 256, 512, 1024, 2048, 4096]


def chunk_sizes(braid: Braid) -> Iterator[list]:
    for name in WORKLOADS:
        for setup in (LLAMA_7B, OPT_30B):
            paper, searched = setup.compare(braid, table_2(name, 8), PAIR, None)
            quantity = f"{setup.backbone}, {name}, 8 tasks: throughput over that of the paper's chunk size"
            yield ["13", quantity, "chunk size", "searched", *over(searched, paper)]


def random_load(name: str, lengths: list[int], draws: random.Random) -> Load:
    """Three to eight tasks of 2 to 32 samples a step, each of one of these lengths."""
    tasks = []
    for _ in range(draws.randint(3, 8)):
        length = draws.choice(lengths)
        data = Dataset(f"length{length}", length, length * draws.uniform(0.2, 0.6), 0.5)
        tasks.append((data, draws.randint(2, 32)))
    return Load(name, tasks)


def chunk_sizes_of_random_loads(braid: Braid) -> Iterator[list]:
    """With the deployment fixed and with the planner's own."""
    four = LLAMA_7B.cluster(braid)
    eight = replace(LLAMA_13B_ONE_NODE, gpu="h100", link="nvswitch").cluster(braid)
    for name, text, lengths, cluster, flags in (
        ("multiples", "lengths of 32 to 1,024, four A40s, four stages", SHORT, four, {"tp": 1, "pp": 4}),
        ("powers", "lengths of 64 to 4,096, four A40s", POWERS, four, {}),
        ("powers", "lengths of 64 to 4,096, eight H100s", POWERS, eight, {}),
    ):
        draws = random.Random(SEED)
        gains = []
        for index in range(RANDOM_LOADS):
            load = random_load(f"{name}-{index}", lengths, draws).write(braid, "llama2-7b")
            paper, searched = braid.compare(load, cluster, PAIR, **flags)
            gains.append(saved(searched, paper))
        gains = [gain for gain in gains if gain[0] is not None]
        quantity = f"llama2-7b, {len(gains)} random loads, {text}: time saved by the fastest chunk size"
        mean = sum(part for part, _ in gains) / len(gains)
        for which, cells in (("mean", (mean, "")), ("least", min(gains)), ("most", max(gains))):
            yield ["13", quantity, "of the loads", which, *cells]
