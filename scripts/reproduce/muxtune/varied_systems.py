"""What hosts, links and NeMo's schedule do to MuxTune's lead: rows of varied.csv."""

from collections.abc import Iterator
from dataclasses import replace

from .. import Braid, Dataset, over
from .settings import FOUR_GPU_TENSOR, GPT_2_7B, LLAMA_7B, LLAMA_7B_16, MUXTUNE, NEMO, NEMO_INTERLEAVED, OPT_30B
from .settings import ORCHESTRATED, QA, RTE, SL_PEFT, SST2, TWO_GPU_TENSOR, UNFUSED, lost, microbatches, mixed

# What `nvlink` gives a pair of A40s, as if it joined every pair: the bridge joins two, and four share PCIe.
BRIDGE_BETWEEN_ALL = {"bandwidth_gbs": 56.25, "latency_us": 3.4}
LAUNCH_MICROSECONDS = [5, 10, 20, 40]


def launch_costs(braid: Braid) -> Iterator[list]:
    """What the host takes to start a kernel, dispatch by the framework included."""
    for microseconds in LAUNCH_MICROSECONDS:
        for figure, gpu, link in (("15", "h100", "nvswitch"), ("14", "a40", "nvlink")):
            profile = braid.profile(gpu, "bf16", f"{gpu}-launch{microseconds}", launch_seconds=microseconds * 1e-6)
            for setup in (GPT_2_7B, LLAMA_7B):
                setup, policies = replace(setup, gpu=gpu, link=link), [NEMO, SL_PEFT, MUXTUNE, UNFUSED]
                plans = setup.compare(braid, mixed([SST2], 4, 16), policies, microbatches(16), profile=profile)
                nemo, padded, ours, unfused = plans
                name, varied = f"{setup.backbone}, SST2, batch 16, {gpu}", ["launch, microseconds", microseconds]
                yield [figure, f"{name}: over NeMo", *varied, *over(ours, nemo)]
                yield [figure, f"{name}: over SL-PEFT", *varied, *over(ours, padded)]
                yield ["16", f"{name}: lost without task fusion", *varied, *lost(ours, unfused)]


def links(braid: Braid) -> Iterator[list]:
    policies = [f"{ORCHESTRATED}:orchestration=off", ORCHESTRATED]
    for setup in (TWO_GPU_TENSOR, FOUR_GPU_TENSOR):
        for link in ("nvlink", "pcie4", BRIDGE_BETWEEN_ALL):
            apart, ours = replace(setup, link=link).compare(braid, mixed([QA], 4, 32), policies, 1)
            quantity = f"tp {setup.tp}, 4 tasks: time with overlap over without"
            yield ["18", quantity, "link", str(link), *over(ours, apart, "step_seconds")]
    for count in (2, 4, 8, 16, 32):
        nemo, ours = LLAMA_7B.compare(braid, mixed([QA], count, 64), [NEMO, ORCHESTRATED], 8)
        yield ["19", "pipeline, 8 microbatches: over NeMo", "tasks", count, *over(ours, nemo)]


def schedules(braid: Braid) -> Iterator[list]:
    """NeMo with interleaved stages, where they are faster than 1F1B."""
    length = Dataset("length128", 128, 64, 0.4)
    cases = []  # figure, quantity, setup, load, microbatches, ours
    for count in (8, 4):
        for tasks in (2, 4, 8):
            text = f"pipeline, {count} microbatches, {tasks} tasks"
            cases.append(("19", text, LLAMA_7B, mixed([length], tasks, 8 * count), count, ORCHESTRATED))
    for figure, setup, datasets, tasks, batch in (
        ("14", OPT_30B, [RTE], 4, 16),
        ("14", OPT_30B, [SST2, QA, RTE], 4, 16),
        ("21a", LLAMA_7B, [QA], 4, 128),
        ("21a", LLAMA_7B_16, [QA], 16, 128),
    ):
        text = f"{setup.backbone}, {setup.gpus} GPUs, {'-'.join(dataset.name for dataset in datasets)}"
        cases.append((figure, text, setup, mixed(datasets, tasks, batch), microbatches(batch), MUXTUNE))
    for figure, text, setup, load, count, policy in cases:
        plain, best, ours = setup.compare(braid, load, [NEMO, NEMO_INTERLEAVED, policy], count)
        for schedule, baseline in (("1f1b", plain), ("best", best)):
            yield [figure, f"{text}: over NeMo", "NeMo's schedule", schedule, *over(ours, baseline)]
