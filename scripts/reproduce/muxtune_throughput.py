"""MuxTune figures 14, 15 and 21(a): effective throughput against batch size, backbone, GPU and number of GPUs."""

from muxtune_settings import (
    GPT_2_7B,
    LLAMA_13B,
    LLAMA_13B_ONE_NODE,
    LLAMA_7B,
    LLAMA_7B_16,
    MUXTUNE,
    NEMO,
    OPT_30B,
    QA,
    RTE,
    SL_PEFT,
    SST2,
    Setup,
    best_hf_peft,
    microbatches,
    workload,
)
from planning import Plan, Planner, ratio
from report import Panel, Report, Series

UNIFORM = {"sst2": [SST2], "qa": [QA], "rte": [RTE]}
NON_UNIFORM = {"non-uniform": [SST2, QA, RTE]}
TASKS = 4
BATCHES = [16, 32, 64]
SHOWN = {"hf-peft": "HF-PEFT", "nemo": "NeMo", "sl-peft": "SL-PEFT", "muxtune": "MuxTune"}
Grid = dict[tuple, dict[str, Plan]]


def grid(planner: Planner, setups: list[Setup], gpu: str, intra_node: str, with_hf_peft: bool) -> Grid:
    """Plans by policy for every (backbone, datasets, batch)."""
    found: Grid = {}
    for setup in setups:
        cluster = setup.cluster(planner, gpu, intra_node)
        for mix_name, mix in {**UNIFORM, **NON_UNIFORM}.items():
            for batch in BATCHES:
                tasks = workload(planner, setup.backbone, mix, TASKS, batch)
                count = microbatches(batch)
                plans = planner.compare(tasks, cluster, [NEMO, SL_PEFT, MUXTUNE], microbatches=count, **setup.flags)
                if with_hf_peft:
                    plans.insert(0, best_hf_peft(planner, tasks, cluster, count))
                found[setup.backbone, mix_name, batch] = {plan.policy.split(":")[0]: plan for plan in plans}
    return found


def claim_largest(report: Report, figure: str, found: Grid, baseline: str, mixes, paper: float, text: str) -> None:
    """ "Up to" in the paper: the largest ratio that the grid holds."""
    ratios = {
        key: ratio(plans["muxtune"].effective, plans[baseline].effective)
        for key, plans in found.items()
        if key[1] in mixes
    }
    possible = {key: value for key, value in ratios.items() if value}
    key = max(possible, key=possible.get)
    commands = "; ".join(found[key][policy].command for policy in ("muxtune", baseline))
    report.claim(figure, f"{text} over {SHOWN[baseline]}, up to", paper, possible[key], commands)


def write_grid(report: Report, name: str, found: Grid) -> None:
    report.plans(
        name,
        ["backbone", "datasets", "global_batch_size"],
        [(list(key), plan) for key, plans in found.items() for plan in plans.values()],
    )


def panels(found: Grid, backbones: list[str], batch: int) -> list[Panel]:
    drawn = []
    for backbone in backbones:
        mixes = [mix for name, mix, size in found if name == backbone and size == batch]
        plans = {mix: found[backbone, mix, batch] for mix in mixes}
        drawn.append(
            Panel(
                f"{backbone}, batch {batch}",
                "effective tokens/s",
                mixes,
                [
                    Series(
                        SHOWN[policy],
                        [plans[mix][policy].effective for mix in mixes],
                        [plans[mix][policy].effective_bound for mix in mixes],
                    )
                    for policy in plans[mixes[0]]
                ],
            )
        )
    return drawn


def figure_14(planner: Planner, report: Report) -> None:
    setups = [GPT_2_7B, LLAMA_7B, LLAMA_13B, OPT_30B]
    found = grid(planner, setups, "a40", "nvlink", with_hf_peft=True)
    for baseline, paper in {"hf-peft": 2.33, "nemo": 1.87, "sl-peft": 1.64}.items():
        claim_largest(report, "14", found, baseline, UNIFORM, paper, "uniform")
    for baseline, paper in {"hf-peft": 2.23, "nemo": 1.83, "sl-peft": 1.85}.items():
        claim_largest(report, "14", found, baseline, NON_UNIFORM, paper, "non-uniform")
    write_grid(report, "figure14", found)
    report.picture(
        "figure14",
        "14",
        "MuxTune figure 14: throughput on A40s (thin: at the proven lower bound)",
        panels(found, [setup.backbone for setup in setups], 32),
    )


def figure_15(planner: Planner, report: Report) -> None:
    setups = [GPT_2_7B, LLAMA_7B, LLAMA_13B_ONE_NODE]
    found = grid(planner, setups, "h100", "nvswitch", with_hf_peft=False)
    for baseline, paper in {"nemo": 5.29, "sl-peft": 2.31}.items():
        claim_largest(report, "15", found, baseline, UNIFORM, paper, "uniform")
    for baseline, paper in {"nemo": 3.69, "sl-peft": 1.94}.items():
        claim_largest(report, "15", found, baseline, NON_UNIFORM, paper, "non-uniform")
    write_grid(report, "figure15", found)
    report.picture(
        "figure15",
        "15",
        "MuxTune figure 15: throughput on H100s (thin: at the proven lower bound)",
        panels(found, [setup.backbone for setup in setups], 32),
    )


def figure_21a(planner: Planner, report: Report) -> None:
    """n tasks on n GPUs: one instance of all, or instances of four GPUs side by side."""
    setups = [
        Setup("llama2-7b", 1, 1, 1, 1),
        Setup("llama2-7b", 1, 2, 2, 1),
        LLAMA_7B,
        Setup("llama2-7b", 4, 2, 2, 4),
        LLAMA_7B_16,
    ]
    policies = [NEMO, SL_PEFT, MUXTUNE]
    found = {
        setup.gpus: planner.compare(
            workload(planner, setup.backbone, [QA], setup.gpus, 128),
            setup.cluster(planner),
            policies,
            microbatches=microbatches(128),
            **setup.flags,
        )
        for setup in setups
    }
    gpus = list(found)
    over = {count: ratio(plans[2].effective, plans[0].effective) for count, plans in found.items()}
    best = max(over, key=lambda count: over[count] or 0)
    report.claim("21a", f"up-only over NeMo ({best} GPUs)", 1.61, over[best], found[best][2].command)
    report.claim("21a", "up-then-out over NeMo", 1.28, over[LLAMA_7B.gpus], found[LLAMA_7B.gpus][2].command)
    report.plans("figure21a", ["gpus"], [([count], plan) for count, plans in found.items() for plan in plans])
    series = []
    for index, policy in enumerate(("NeMo", "SL-PEFT", "MuxTune")):
        plans = {count: found[count][index] for count in gpus}
        series.append(
            Series(
                f"{policy}-up",
                [plans[count].effective for count in gpus],
                [plans[count].effective_bound for count in gpus],
            )
        )
        instances = {count: max(1, count // LLAMA_7B.gpus) for count in gpus}
        largest = {count: plans[min(count, LLAMA_7B.gpus)] for count in gpus}
        series.append(
            Series(
                f"{policy}-up-then-out",
                [largest[count].effective * instances[count] for count in gpus],
                [largest[count].effective_bound * instances[count] for count in gpus],
            )
        )
    report.picture(
        "figure21a",
        "21a",
        "MuxTune figure 21(a): scaling (thin: at the proven lower bound)",
        [Panel("llama2-7b, QA, batch 128, n tasks", "effective tokens/s", gpus, series, lines=True)],
    )
