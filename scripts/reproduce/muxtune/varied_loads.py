"""Batches, microbatches and datasets varied one at a time: rows of varied.csv."""

import itertools
from collections.abc import Iterator

from .. import Braid, over
from . import fig14, fig15
from .settings import HF_PEFT, LLAMA_13B, LLAMA_7B, MUXTUNE, NEMO, QA, RTE, SL_PEFT, SST2, microbatches, mixed
from .throughput import MIXES, TASKS


def batches(braid: Braid) -> Iterator[list]:
    """Pipelines of few microbatches drain for most of a step."""
    for setup, sizes in ((LLAMA_7B, (16, 32, 64, 128)), (LLAMA_13B, (16, 32, 64))):
        for batch in sizes:
            load, count = mixed([QA], 4, batch), microbatches(batch)
            nemo, padded, ours = setup.compare(braid, load, [NEMO, SL_PEFT, MUXTUNE], count)
            workload, cluster = load.write(braid, setup.backbone), setup.cluster(braid)
            layers, copies = (
                braid.compare(workload, cluster, [HF_PEFT], tp=1, pp=pp, microbatches=count)[0]
                for pp in (setup.gpus, 1)
            )
            baselines = {"NeMo": nemo, "SL-PEFT": padded, "HF-PEFT, layers over GPUs": layers}
            for text, plan in {**baselines, "HF-PEFT, a copy a GPU": copies}.items():
                yield ["14", f"{setup.backbone}, QA: over {text}", "global batch", batch, *over(ours, plan)]
    for count in (1, 2, 4, 8, 16):
        nemo, _, ours = LLAMA_7B.compare(braid, mixed([QA], 4, 128), [NEMO, SL_PEFT, MUXTUNE], count)
        varied = "microbatches of a batch of 128"
        yield ["21a", "up-then-out (4 GPUs): over NeMo", varied, count, *over(ours, nemo)]


def microbatch_counts(braid: Braid) -> Iterator[list]:
    """The largest ratios of a grid with microbatches of 8, and with the number that is best for each policy."""
    grids = {"14": fig14.SETUPS, "15": fig15.SETUPS}
    for (figure, setups), kind, best in itertools.product(grids.items(), MIXES, (False, True)):
        found = [
            setup.compare(
                braid, mixed(mix, TASKS, batch), [NEMO, SL_PEFT, MUXTUNE], None if best else microbatches(batch)
            )
            for setup, mix, batch in itertools.product(setups, MIXES[kind].values(), (16, 64))
        ]
        for index, text in enumerate(("NeMo", "SL-PEFT")):
            largest = max((over(plans[2], plans[index]) for plans in found), key=lambda cells: cells[0] or 0)
            chosen = "each its best" if best else "of 8"
            yield [figure, f"{kind}: over {text}, up to", "microbatches", chosen, *largest]


def mixes(braid: Braid) -> Iterator[list]:
    for mix in ([SST2, QA], [QA, RTE], [SST2, QA, RTE], [SST2, RTE]):
        padded, ours = LLAMA_7B.compare(braid, mixed(mix, 4, 64), [SL_PEFT, MUXTUNE], 8)
        names = " ".join(dataset.name for dataset in mix)
        yield ["14", "llama2-7b, batch 64: over SL-PEFT", "datasets", names, *over(ours, padded)]
