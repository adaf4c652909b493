"""What parts of MuxTune do where they have more and less to do: rows of varied.csv."""

from collections.abc import Iterator
from dataclasses import replace

from .. import Braid, commands, over, ratio
from . import fig16
from .settings import FOUR_GPU_TENSOR, GPT_2_7B, LLAMA_13B, LLAMA_7B, LOADS, MUXTUNE, NEMO_RESIDENT, QA, RTE, SL_PEFT
from .settings import SST2, UNFUSED, WORKLOADS, Load, figure_16_load, lost, microbatches, mixed, table_2


def parts(braid: Braid) -> Iterator[list]:
    policies = [MUXTUNE, *(f"{MUXTUNE}:{option}" for option in fig16.PARTS.values())]
    for load in LOADS:
        for count in (1, 2, 4, 8, 16):
            whole, *others = LLAMA_7B.compare(braid, figure_16_load(load, 8 * count), policies, count)
            for part, plan in zip(fig16.PARTS, others):
                yield ["16", f"{load}: lost without {part}", "microbatches of 8", count, *lost(whole, plan)]


def microbatch_sizes(braid: Braid) -> Iterator[list]:
    """How small microbatches are: what there is for fusion to fill."""
    for load in LOADS:
        for samples in (8, 4, 2, 1):
            ours, unfused = LLAMA_7B.compare(braid, figure_16_load(load, 16 * samples), [MUXTUNE, UNFUSED], 16)
            quantity = f"{load}, 16 microbatches: lost without task fusion"
            yield ["16", quantity, "samples of a microbatch", samples, *lost(ours, unfused)]


def residence(braid: Braid) -> Iterator[list]:
    """What is held at once: activations of all tasks where they are interleaved, of one where they take turns."""
    policies = [MUXTUNE, f"{MUXTUNE}:orchestration=off", f"{UNFUSED}:orchestration=off", SL_PEFT]
    nemo, *others = GPT_2_7B.compare(braid, table_2("WL-A", 15), [NEMO_RESIDENT, *policies], 1)
    for plan in others:
        less = ratio(nemo.peak_gigabytes, plan.peak_gigabytes)
        yield ["17", "WL-A, 15 tasks: NeMo's memory over", "policy", plan.policy, less, commands(nemo, plan)]


def htasks(braid: Braid) -> Iterator[list]:
    """Eq. 6 as printed puts more tasks into one hTask than the planner's own fusion does."""
    policies = [SL_PEFT, f"{MUXTUNE}:chunk=128", f"{MUXTUNE}:chunk=128:fusion=literal"]
    for tasks in (5, 8):
        padded, *chunked = LLAMA_7B.compare(braid, table_2("WL-B", tasks), policies, 1)
        for plan in chunked:
            quantity = f"WL-B, {tasks} tasks, chunk 128: effective over SL-PEFT"
            yield ["20", quantity, "hTasks", plan.htasks, *over(plan, padded)]


def launch_rules(braid: Braid) -> Iterator[list]:
    """Where hTasks share a clock: subgraphs launched when they can start, or as algorithm 1 is printed."""
    loads = {}
    for count in (4, 8):
        for name in WORKLOADS:
            load = table_2(name, count)
            loads[f"{name} of {count}"] = Load(load.name.lower(), load.tasks), 1
    loads["non-uniform"] = mixed([SST2, QA, RTE], 4, 32), microbatches(32)
    for link in ("nvlink", "pcie4"):
        for setup in (GPT_2_7B, FOUR_GPU_TENSOR, LLAMA_13B):
            for text, (load, count) in loads.items():
                policies = [f"{MUXTUNE}:launch=shallowest", MUXTUNE]
                printed, ours = replace(setup, link=link).compare(braid, load, policies, count)
                quantity = f"{setup.backbone}, tp {setup.tp}, {text}: over algorithm 1's launches as printed"
                yield ["3.4.2", quantity, "links", link, *over(ours, printed)]
