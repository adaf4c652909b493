"""One thing varied at a time, to show what a missed claim of MuxTune depends on: results/muxtune/varied.csv."""

from muxtune_ablation import FOUR_GPU_TENSOR, TWO_GPU_TENSOR, lost
from muxtune_settings import (
    GPT_2_7B,
    LLAMA_13B,
    LLAMA_7B,
    LLAMA_7B_16,
    MUXTUNE,
    NEMO,
    NEMO_INTERLEAVED,
    NEMO_RESIDENT,
    OPT_30B,
    QA,
    RTE,
    SL_PEFT,
    SST2,
    WL_A,
    WL_B,
    microbatches,
    over,
    table2_workload,
    workload,
)
from muxtune_varied_chunks import vary_chunks, vary_chunks_of_mixes
from muxtune_varied_loads import vary_batch, vary_microbatches, vary_mix
from planning import Dataset, Plan, Planner, ratio
from report import Report

# What `nvlink` gives a pair of A40s, as if it joined every pair: the bridge joins two, and four share PCIe.
BRIDGE_BETWEEN_ALL = {"bandwidth_gbs": 56.25, "latency_us": 3.4}
LAUNCH_MICROSECONDS = [5, 10, 20, 40]


def vary_launches(planner: Planner) -> list:
    """What the host takes to start a kernel, dispatch by the framework included."""
    rows = []
    for microseconds in LAUNCH_MICROSECONDS:
        for gpu, intra_node in (("h100", "nvswitch"), ("a40", "nvlink")):
            profile = planner.profile(gpu, "bf16", f"{gpu}-launch{microseconds}", launch_seconds=microseconds * 1e-6)
            for setup, batch in ((GPT_2_7B, 16), (LLAMA_7B, 16)):
                nemo, padded, ours, unfused = planner.compare(
                    workload(planner, setup.backbone, [SST2], 4, batch),
                    setup.cluster(planner, gpu, intra_node),
                    [NEMO, SL_PEFT, MUXTUNE, f"{MUXTUNE}:fusion=off"],
                    microbatches=microbatches(batch),
                    profile=profile,
                    **setup.flags,
                )
                figure = "15" if gpu == "h100" else "14"
                name = f"{setup.backbone}, SST2, batch {batch}, {gpu}"
                varied = ["launch, microseconds", microseconds]
                rows.append([figure, f"{name}: over NeMo", *varied, *over(ours, nemo)])
                rows.append([figure, f"{name}: over SL-PEFT", *varied, *over(ours, padded)])
                rows.append(
                    [
                        "16",
                        f"{name}: lost without task fusion",
                        *varied,
                        lost(ours.effective, unfused.effective),
                        f"{ours.command}; {unfused.command}",
                    ]
                )
    return rows


def vary_ablation(planner: Planner) -> list:
    rows = []
    for load, datasets in (("light", WL_A), ("heavy", WL_B)):
        for count in (1, 2, 4, 8, 16):
            tasks = planner.workload(
                f"llama2-7b-{load}-batch{8 * count}", "llama2-7b", [(each, 8 * count) for each in datasets]
            )
            plans = planner.compare(
                tasks,
                LLAMA_7B.cluster(planner),
                [MUXTUNE, f"{MUXTUNE}:fusion=off", f"{MUXTUNE}:orchestration=off", f"{MUXTUNE}:alignment=zero"],
                microbatches=count,
                **LLAMA_7B.flags,
            )
            for text, plan in zip(("task fusion", "operator orchestration", "data alignment"), plans[1:]):
                rows.append(
                    [
                        "16",
                        f"{load}: lost without {text}",
                        "microbatches of 8",
                        count,
                        lost(plans[0].effective, plan.effective),
                        f"{plans[0].command}; {plan.command}",
                    ]
                )
    return rows


def vary_samples(planner: Planner) -> list:
    """How small microbatches are: what there is for fusion to fill."""
    rows = []
    for load, datasets in (("light", WL_A), ("heavy", WL_B)):
        for samples in (8, 4, 2, 1):
            tasks = planner.workload(
                f"llama2-7b-{load}-batch{16 * samples}", "llama2-7b", [(each, 16 * samples) for each in datasets]
            )
            ours, unfused = planner.compare(
                tasks, LLAMA_7B.cluster(planner), [MUXTUNE, f"{MUXTUNE}:fusion=off"], microbatches=16, **LLAMA_7B.flags
            )
            quantity = f"{load}, 16 microbatches: lost without task fusion"
            value, commands = lost(ours.effective, unfused.effective), f"{ours.command}; {unfused.command}"
            rows.append(["16", quantity, "samples of a microbatch", samples, value, commands])
    return rows


def vary_residence(planner: Planner) -> list:
    """What is held at once: activations of all tasks where they are interleaved, of one where they take turns."""
    rows = []
    tasks = table2_workload(planner, "WL-A", "gpt3-2.7b", WL_A, 15)
    nemo, *others = planner.compare(
        tasks,
        GPT_2_7B.cluster(planner),
        [NEMO_RESIDENT, MUXTUNE, f"{MUXTUNE}:orchestration=off", f"{MUXTUNE}:fusion=off:orchestration=off", SL_PEFT],
        microbatches=1,
        **GPT_2_7B.flags,
    )
    for plan in others:
        rows.append(
            [
                "17",
                "WL-A, 15 tasks: NeMo's memory over",
                "policy",
                plan.policy,
                ratio(nemo.peak_gigabytes, plan.peak_gigabytes),
                f"{nemo.command}; {plan.command}",
            ]
        )
    return rows


def vary_links(planner: Planner) -> list:
    rows = []
    orchestrated = f"{MUXTUNE}:fusion=off:alignment=zero"
    for setup in (TWO_GPU_TENSOR, FOUR_GPU_TENSOR):
        for link in ("nvlink", "pcie4", BRIDGE_BETWEEN_ALL):
            tasks = workload(planner, "llama2-7b", [QA], 4, 32)
            apart, ours = planner.compare(
                tasks,
                setup.cluster(planner, intra_node=link),
                [f"{orchestrated}:orchestration=off", orchestrated],
                microbatches=1,
                **setup.flags,
            )
            rows.append(
                [
                    "18",
                    f"tp {setup.tp}, 4 tasks: time with overlap over without",
                    "link",
                    str(link),
                    ratio(ours.step_seconds, apart.step_seconds),
                    f"{ours.command}; {apart.command}",
                ]
            )
    for count in (2, 4, 8, 16, 32):
        tasks = workload(planner, "llama2-7b", [QA], count, 64)
        nemo, ours = planner.compare(
            tasks, LLAMA_7B.cluster(planner), [NEMO, orchestrated], microbatches=8, **LLAMA_7B.flags
        )
        rows.append(["19", "pipeline, 8 microbatches: over NeMo", "tasks", count, *over(ours, nemo)])
    return rows


def vary_htasks(planner: Planner) -> list:
    """Eq. 6 as printed puts more tasks into one hTask than the planner's own fusion does."""
    rows = []
    for tasks in (5, 8):
        file = table2_workload(planner, "WL-B", "llama2-7b", WL_B, tasks)
        padded, *chunked = planner.compare(
            file,
            LLAMA_7B.cluster(planner),
            [SL_PEFT, f"{MUXTUNE}:chunk=128", f"{MUXTUNE}:chunk=128:fusion=literal"],
            microbatches=1,
            **LLAMA_7B.flags,
        )
        for plan in chunked:
            quantity = f"WL-B, {tasks} tasks, chunk 128: effective over SL-PEFT"
            rows.append(["20", quantity, "hTasks", plan.htasks, *over(plan, padded)])
    return rows


def vary_schedule(planner: Planner) -> list:
    """NeMo with interleaved stages, where they are faster than 1F1B."""
    rows = []

    def row(figure: str, quantity: str, baseline: Plan, ours: Plan) -> None:
        schedule = "best" if baseline.policy == NEMO_INTERLEAVED else "1f1b"
        rows.append([figure, quantity, "NeMo's schedule", schedule, *over(ours, baseline)])

    orchestrated = f"{MUXTUNE}:fusion=off:alignment=zero"
    length = Dataset("length128", 128, 64, 0.4)
    for count, batch in ((8, 64), (4, 32)):
        for tasks in (2, 4, 8):
            file = workload(planner, "llama2-7b", [length], tasks, batch)
            policies = [NEMO, NEMO_INTERLEAVED, orchestrated]
            plain, best, ours = planner.compare(
                file, LLAMA_7B.cluster(planner), policies, microbatches=count, **LLAMA_7B.flags
            )
            for baseline in (plain, best):
                row("19", f"pipeline, {count} microbatches, {tasks} tasks: over NeMo", baseline, ours)
    for figure, setup, datasets, tasks, batch in (
        ("14", OPT_30B, [RTE], 4, 16),
        ("14", OPT_30B, [SST2, QA, RTE], 4, 16),
        ("21a", LLAMA_7B, [QA], 4, 128),
        ("21a", LLAMA_7B_16, [QA], 16, 128),
    ):
        plain, best, ours = planner.compare(
            workload(planner, setup.backbone, datasets, tasks, batch),
            setup.cluster(planner),
            [NEMO, NEMO_INTERLEAVED, MUXTUNE],
            microbatches=microbatches(batch),
            **setup.flags,
        )
        name = "-".join(dataset.name for dataset in datasets)
        for baseline in (plain, best):
            row(figure, f"{setup.backbone}, {setup.gpus} GPUs, {name}: over NeMo", baseline, ours)
    return rows


def vary_launch_rule(planner: Planner) -> list:
    """Where hTasks share a clock: subgraphs launched when they can start, or as algorithm 1 is printed."""
    rows = []
    for intra_node in ("nvlink", "pcie4"):
        for setup in (GPT_2_7B, FOUR_GPU_TENSOR, LLAMA_13B):
            cluster = setup.cluster(planner, intra_node=intra_node)
            loads = {
                f"{name} of {count}": (table2_workload(planner, name.lower(), setup.backbone, datasets, count), 1)
                for count in (4, 8)
                for name, datasets in (("WL-A", WL_A), ("WL-B", WL_B))
            }
            mix = [SST2, QA, RTE]
            loads["non-uniform"] = (workload(planner, setup.backbone, mix, 4, 32), microbatches(32))
            for load, (tasks, count) in loads.items():
                printed, ours = planner.compare(
                    tasks, cluster, [f"{MUXTUNE}:launch=shallowest", MUXTUNE], microbatches=count, **setup.flags
                )
                quantity = f"{setup.backbone}, tp {setup.tp}, {load}: over algorithm 1's launches as printed"
                rows.append(["3.4.2", quantity, "links", intra_node, *over(ours, printed)])
    return rows


def vary(planner: Planner, report: Report) -> None:
    rows = []
    for study in (
        vary_batch,
        vary_microbatches,
        vary_mix,
        vary_launches,
        vary_ablation,
        vary_samples,
        vary_residence,
        vary_links,
        vary_htasks,
        vary_schedule,
        vary_chunks,
        vary_chunks_of_mixes,
        vary_launch_rule,
    ):
        rows += study(planner)
    report.table("varied", ["figure", "quantity", "varied", "value", "ours", "command"], rows)
