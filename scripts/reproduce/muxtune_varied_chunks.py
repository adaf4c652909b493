"""The chunk size that MuxTune's rule gives, and the one that is fastest, for results/muxtune/varied.csv."""

import random

from muxtune_settings import LLAMA_7B, LLAMA_13B_ONE_NODE, MUXTUNE, OPT_30B, WL_A, WL_B, over, table2_workload
from planning import Dataset, Planner

PAIR = [MUXTUNE, f"{MUXTUNE}:chunk=searched"]
LOADS, SEED = 10, 17


def vary_chunks(planner: Planner) -> list:
    rows = []
    for name, datasets in (("WL-A", WL_A), ("WL-B", WL_B)):
        for setup in (LLAMA_7B, OPT_30B):
            file = table2_workload(planner, name, setup.backbone, datasets, 8)
            paper, searched = planner.compare(file, setup.cluster(planner), PAIR, **setup.flags)
            quantity = f"{setup.backbone}, {name}, 8 tasks: throughput over that of the paper's chunk size"
            rows.append(["13", quantity, "chunk size", "searched", *over(searched, paper)])
    return rows


def random_load(planner: Planner, name: str, lengths: list[int], draws: random.Random) -> str:
    """Three to eight tasks of 2 to 32 samples a step, each of one of these lengths."""
    tasks = []
    for _ in range(draws.randint(3, 8)):
        length = draws.choice(lengths)
        data = Dataset(f"length{length}", length, length * draws.uniform(0.2, 0.6), 0.5)
        tasks.append((data, draws.randint(2, 32)))
    return planner.workload(f"llama2-7b-{name}", "llama2-7b", tasks)


def vary_chunks_of_mixes(planner: Planner) -> list:
    """Over random loads, with the deployment fixed and with the planner's own."""
    short = list(range(32, 1025, 16))
    powers = [64, 128, 256, 512, 1024, 2048, 4096]
    four = LLAMA_7B.cluster(planner)
    eight = LLAMA_13B_ONE_NODE.cluster(planner, "h100", "nvswitch")
    rows = []
    for name, text, lengths, cluster, flags in (
        ("multiples", "lengths of 32 to 1,024, four A40s, four stages", short, four, LLAMA_7B.flags),
        ("powers", "lengths of 64 to 4,096, four A40s", powers, four, {}),
        ("powers", "lengths of 64 to 4,096, eight H100s", powers, eight, {}),
    ):
        draws = random.Random(SEED)
        gains = []
        for load in range(LOADS):
            file = random_load(planner, f"{name}-{load}", lengths, draws)
            paper, searched = planner.compare(file, cluster, PAIR, **flags)
            if paper.step_seconds and searched.step_seconds:
                saved = 1 - searched.step_seconds / paper.step_seconds
                gains.append((saved, f"{searched.command}; {paper.command}"))
        quantity = f"llama2-7b, {len(gains)} random loads, {text}: time saved by the fastest chunk size"
        mean = sum(saved for saved, _ in gains) / len(gains)
        rows.append(["13", quantity, "of the loads", "mean", mean, ""])
        for which, one in (("least", min(gains)), ("most", max(gains))):
            rows.append(["13", quantity, "of the loads", which, *one])
    return rows
