"""Batches, microbatches and datasets varied one at a time, for results/muxtune/varied.csv."""

import itertools

from muxtune_settings import (
    GPT_2_7B,
    HF_PEFT,
    LLAMA_13B,
    LLAMA_13B_ONE_NODE,
    LLAMA_7B,
    MUXTUNE,
    NEMO,
    OPT_30B,
    QA,
    RTE,
    SL_PEFT,
    SST2,
    microbatches,
    over,
    workload,
)
from planning import Planner


def vary_batch(planner: Planner) -> list:
    """Pipelines of few microbatches drain for most of a step."""
    rows = []
    for setup, batches in ((LLAMA_7B, (16, 32, 64, 128)), (LLAMA_13B, (16, 32, 64))):
        for batch in batches:
            tasks, cluster = workload(planner, setup.backbone, [QA], 4, batch), setup.cluster(planner)
            nemo, padded, ours = planner.compare(
                tasks, cluster, [NEMO, SL_PEFT, MUXTUNE], microbatches=microbatches(batch), **setup.flags
            )
            layers = planner.compare_one(tasks, cluster, HF_PEFT, tp=1, pp=setup.gpus, microbatches=microbatches(batch))
            copies = planner.compare_one(tasks, cluster, HF_PEFT, tp=1, pp=1, microbatches=microbatches(batch))
            for text, plan in (
                ("NeMo", nemo),
                ("SL-PEFT", padded),
                ("HF-PEFT, layers over GPUs", layers),
                ("HF-PEFT, a copy a GPU", copies),
            ):
                rows.append(["14", f"{setup.backbone}, QA: over {text}", "global batch", batch, *over(ours, plan)])
    for count in (1, 2, 4, 8, 16):
        tasks = workload(planner, "llama2-7b", [QA], 4, 128)
        nemo, padded, ours = planner.compare(
            tasks, LLAMA_7B.cluster(planner), [NEMO, SL_PEFT, MUXTUNE], microbatches=count, **LLAMA_7B.flags
        )
        rows.append(
            ["21a", "up-then-out (4 GPUs): over NeMo", "microbatches of a batch of 128", count, *over(ours, nemo)]
        )
    return rows


def vary_microbatches(planner: Planner) -> list:
    """The largest ratios of a grid with microbatches of 8, and with the number that is best for each policy."""
    rows = []
    mixes = {"uniform": ([SST2], [QA], [RTE]), "non-uniform": ([SST2, QA, RTE],)}
    grids = [
        ("14", "a40", "nvlink", (GPT_2_7B, LLAMA_7B, LLAMA_13B, OPT_30B)),
        ("15", "h100", "nvswitch", (GPT_2_7B, LLAMA_7B, LLAMA_13B_ONE_NODE)),
    ]
    for (figure, gpu, link, setups), name, best in itertools.product(grids, mixes, (False, True)):
        found = [
            planner.compare(
                workload(planner, setup.backbone, mix, 4, batch),
                setup.cluster(planner, gpu, link),
                [NEMO, SL_PEFT, MUXTUNE],
                microbatches=None if best else microbatches(batch),
                **setup.flags,
            )
            for setup, mix, batch in itertools.product(setups, mixes[name], (16, 64))
        ]
        for text, index in (("NeMo", 0), ("SL-PEFT", 1)):
            largest = max((over(plans[2], plans[index]) for plans in found), key=lambda cells: cells[0] or 0)
            chosen = "each its best" if best else "of 8"
            rows.append([figure, f"{name}: over {text}, up to", "microbatches", chosen, *largest])
    return rows


def vary_mix(planner: Planner) -> list:
    rows = []
    for mix in ([SST2, QA], [QA, RTE], [SST2, QA, RTE], [SST2, RTE]):
        tasks = workload(planner, "llama2-7b", mix, 4, 64)
        padded, ours = planner.compare(
            tasks, LLAMA_7B.cluster(planner), [SL_PEFT, MUXTUNE], microbatches=8, **LLAMA_7B.flags
        )
        rows.append(
            [
                "14",
                "llama2-7b, batch 64: over SL-PEFT",
                "datasets",
                " ".join(each.name for each in mix),
                *over(ours, padded),
            ]
        )
    return rows
