"""Throughput of four tasks by backbone, datasets and batch size, of figures 14 and 15."""

from .. import Braid, Figure, Panel, Plan, over, series_of
from .settings import HF_PEFT, MUXTUNE, NEMO, QA, RTE, SL_PEFT, SST2, Setup, microbatches, mixed

MIXES = {
    "uniform": {"sst2": [SST2], "qa": [QA], "rte": [RTE]},
    "non-uniform": {"non-uniform": [SST2, QA, RTE]},
}
TASKS = 4
BATCHES, DRAWN_BATCH = [16, 32, 64], 32
SHOWN = {"hf-peft": "HF-PEFT", "nemo": "NeMo", "sl-peft": "SL-PEFT", "muxtune": "MuxTune"}


def plans_of(braid: Braid, setup: Setup, load, count: int, with_hf_peft: bool) -> dict[str, Plan]:
    plans = setup.compare(braid, load, [NEMO, SL_PEFT, MUXTUNE], count)
    if with_hf_peft:
        # No tensor parallelism there: copies that share each batch, or layers laid over the GPUs, whichever is fastest.
        workload = load.write(braid, setup.backbone)
        plans.insert(0, braid.compare(workload, setup.cluster(braid), [HF_PEFT], microbatches=count)[0])
    return {plan.policy.split(":")[0]: plan for plan in plans}


def make_grid(
    braid: Braid, figure: Figure, setups: list[Setup], claims: dict[str, dict[str, float]], title: str
) -> None:
    """`claims`: by kind of mix and baseline, how many times as fast the paper is at most."""
    mixes = {name: mix for kind in MIXES.values() for name, mix in kind.items()}
    baselines = claims["uniform"]
    found = {
        (setup.backbone, name, batch): plans_of(
            braid, setup, mixed(mix, TASKS, batch), microbatches(batch), "hf-peft" in baselines
        )
        for setup in setups
        for name, mix in mixes.items()
        for batch in BATCHES
    }
    for kind, papers in claims.items():
        for baseline, paper in papers.items():
            ratios = [over(plans["muxtune"], plans[baseline]) for key, plans in found.items() if key[1] in MIXES[kind]]
            largest = max(ratios, key=lambda cells: cells[0] or 0)
            figure.claim(f"{kind} over {SHOWN[baseline]}, up to", paper, *largest)
    rows = [(list(key), plan) for key, plans in found.items() for plan in plans.values()]
    figure.plans(["backbone", "datasets", "global_batch_size"], rows)
    panels = []
    for setup in setups:
        drawn = [found[setup.backbone, mix, DRAWN_BATCH] for mix in mixes]
        series = [series_of(SHOWN[policy], [plans[policy] for plans in drawn]) for policy in drawn[0]]
        panels.append(Panel(f"{setup.backbone}, batch {DRAWN_BATCH}", "effective tokens/s", list(mixes), series))
    figure.picture(title, panels)
