"""MuxTune figures 16, 18 and 19: what each part of it contributes."""

from muxtune_settings import (
    LLAMA_7B,
    MUXTUNE,
    NEMO,
    QA,
    Setup,
    WL_A,
    WL_B,
    microbatches,
    workload,
)
from planning import Dataset, Planner, ratio
from report import Panel, Report, Series

ABLATED = {
    "task fusion": "fusion=off",
    "operator orchestration": "orchestration=off",
    "data alignment": "alignment=zero",
}
FOUR_GPU_TENSOR = Setup("llama2-7b", 1, 4, 4, 1)
TWO_GPU_TENSOR = Setup("llama2-7b", 1, 2, 2, 1)


def lost(whole: float | None, without: float | None) -> float | None:
    return 1 - without / whole if whole and without else None


def figure_16(planner: Planner, report: Report) -> None:
    """Twice: with Eq. 6 as the paper prints it, and with the planner's own fusion, which arranges itself around what is
    left out."""
    panels, rows = [], []
    for load, datasets, paper in (("light", WL_A, (0.361, 0.303, 0.225)), ("heavy", WL_B, (0.0625, 0.251, 0.343))):
        tasks = planner.workload(f"llama2-7b-{load}-batch128", "llama2-7b", [(each, 128) for each in datasets])
        series = []
        for kind, whole in (("as printed", f"{MUXTUNE}:fusion=literal"), ("own fusion", MUXTUNE)):
            policies = [whole] + [
                f"{MUXTUNE}:{option}" if "fusion" in option else f"{whole}:{option}" for option in ABLATED.values()
            ]
            plans = planner.compare(
                tasks, LLAMA_7B.cluster(planner), policies, microbatches=microbatches(128), **LLAMA_7B.flags
            )
            rows += [([load, kind], plan) for plan in plans]
            series.append(Series(kind, [plan.effective for plan in plans], [plan.effective_bound for plan in plans]))
            for part, share, plan in zip(ABLATED, paper, plans[1:]):
                report.claim(
                    "16",
                    f"{load}, {kind}: lost without {part}",
                    share,
                    lost(plans[0].effective, plan.effective),
                    f"{plans[0].command}; {plan.command}",
                )
        panels.append(Panel(load, "effective tokens/s", ["all", "no fusion", "no orch.", "no align."], series))
    report.plans("figure16", ["load", "fusion"], rows)
    report.picture("figure16", "16", "MuxTune figure 16: parts left out (thin: at the proven lower bound)", panels)


def figure_18(planner: Planner, report: Report) -> None:
    """Of whole steps in place of one layer; 32 x 128 tokens a task, so that four tasks fit at once."""
    cluster, flags = FOUR_GPU_TENSOR.cluster(planner), FOUR_GPU_TENSOR.flags
    one, four = (workload(planner, "llama2-7b", [QA], count, 32) for count in (1, 4))
    interleaved = f"{MUXTUNE}:fusion=off:alignment=zero"
    alone = planner.compare_one(one, cluster, NEMO, microbatches=1, **flags)
    sequential, overlapped = (
        planner.compare_one(four, cluster, policy, microbatches=1, **flags)
        for policy in (f"{interleaved}:orchestration=off", interleaved)
    )
    report.claim(
        "18",
        "four tasks without overlap, time over one",
        172.5 / 43.2,
        ratio(sequential.step_seconds, alone.step_seconds),
        sequential.command,
    )
    report.claim(
        "18",
        "four tasks with overlap, time over without",
        156.2 / 172.5,
        ratio(overlapped.step_seconds, sequential.step_seconds),
        overlapped.command,
    )
    for text, paper, plan in (
        ("without overlap", 0.847 / 0.825, sequential),
        ("with overlap", 0.978 / 0.825, overlapped),
    ):
        report.claim(
            "18",
            f"four tasks {text}, GPU utilization over one task's",
            paper,
            ratio(plan.utilization, alone.utilization),
            plan.command,
        )
    plans = [alone, sequential, overlapped]
    report.plans("figure18", ["case"], list(zip([["one task"], ["four, no overlap"], ["four, overlap"]], plans)))
    report.picture(
        "figure18",
        "18",
        "MuxTune figure 18: overlap in tensor parallelism (thin: proven lower bound)",
        [
            Panel(
                "llama2-7b, tp 4, 32 x 128 tokens",
                "seconds a step",
                ["one task", "four", "four, overlap"],
                [Series("step", [plan.step_seconds for plan in plans], [plan.bound_seconds for plan in plans])],
            )
        ],
    )


def figure_19(planner: Planner, report: Report) -> None:
    counts, orchestrated = [2, 4, 8], f"{MUXTUNE}:fusion=off:alignment=zero"
    cases = {
        "tensor, 1 microbatch": (TWO_GPU_TENSOR, 1),
        "pipeline, 8 microbatches": (LLAMA_7B, 8),
        "pipeline, 4 microbatches": (LLAMA_7B, 4),
    }
    rows, over, commands, panels = [], {}, {}, []
    for case, (setup, count) in cases.items():
        series = {NEMO: [], MUXTUNE: []}
        for length in (128, 64, 32):
            for tasks in counts:
                file = workload(
                    planner, "llama2-7b", [Dataset(f"length{length}", length, length / 2, 0.4)], tasks, 8 * count
                )
                nemo, ours = planner.compare(
                    file, setup.cluster(planner), [NEMO, orchestrated], microbatches=count, **setup.flags
                )
                rows += [([case, length, tasks], plan) for plan in (nemo, ours)]
                over[case, length, tasks] = ratio(ours.effective, nemo.effective)
                commands[case, length, tasks] = f"{ours.command}; {nemo.command}"
                if length == 128:
                    series[NEMO].append(nemo)
                    series[MUXTUNE].append(ours)
        panels.append(
            Panel(
                f"{case}, length 128",
                "effective tokens/s",
                [f"{tasks} tasks" for tasks in counts],
                [
                    Series(name, [plan.effective for plan in plans], [plan.effective_bound for plan in plans])
                    for name, plans in (("NeMo", series[NEMO]), ("MuxTune, orchestration only", series[MUXTUNE]))
                ],
            )
        )
    for case, paper in {
        "tensor, 1 microbatch": (1.20, 1.22, 1.23),
        "pipeline, 8 microbatches": (1.24, 1.35, 1.36),
    }.items():
        for tasks, value in zip(counts, paper):
            key = case, 128, tasks
            report.claim("19", f"{case}, {tasks} tasks over NeMo", value, over[key], commands[key])
    key = "pipeline, 4 microbatches", 128, counts[-1]
    report.claim("19", "pipeline, 4 microbatches over NeMo, up to", 1.59, over[key], commands[key])
    report.plans("figure19", ["case", "length", "tasks"], rows)
    report.picture("figure19", "19", "MuxTune figure 19: orchestration only (thin: at the proven lower bound)", panels)
