"""Figure 16: more GPUs for one job of four adapters, or for more jobs, 70B."""

from statistics import mean

from .. import Braid, Panel, Plan, Report, Series, commands, ratio
from .settings import BATCH, DATA, LORAFUSION, MLORA, SEVENTY_B, SHOWN, WITH_REPLICAS, Setup

GPUS = [4, 8, 16]
JOB_OVER_DP = {8: 1.18, 16: 1.25}
OVER_UNDER_DP = {WITH_REPLICAS: 1.78, MLORA: 1.50}


def find(braid: Braid, gpus: int, policies: list[str]) -> dict[str, Plan]:
    """One job, its global batches as many times larger as there are replicas."""
    setup = Setup(SEVENTY_B.backbone, gpus, nodes=max(1, gpus // 8))
    return setup.compare(braid, DATA["Het"], policies, batch=BATCH * gpus // GPUS[0], tp=1, pp=4)


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("16")
    found = {gpus: find(braid, gpus, [WITH_REPLICAS, LORAFUSION]) for gpus in GPUS}
    # mLoRA has no data parallelism: as many of it as there are replicas, which synchronise nothing, do no less.
    found[GPUS[0]] |= find(braid, GPUS[0], [MLORA])

    def tokens(policy: str, gpus: int) -> float | None:
        plan = found[gpus].get(policy)
        return plan.data if plan else found[GPUS[0]][policy].data * gpus / GPUS[0]

    one = found[GPUS[0]][LORAFUSION]
    for gpus, paper in JOB_OVER_DP.items():
        jobs, scaled = gpus // GPUS[0], found[gpus][LORAFUSION]
        text = f"{gpus} GPUs: {jobs} jobs over one of {jobs} replicas"
        figure.claim(text, paper, ratio(jobs * one.data, scaled.data), commands(one, scaled))
    for policy, paper in OVER_UNDER_DP.items():
        leads = [ratio(tokens(LORAFUSION, gpus), tokens(policy, gpus)) for gpus in GPUS[1:]]
        told = commands(*(found[gpus].get(policy, found[GPUS[0]][policy]) for gpus in GPUS[1:]))
        figure.claim(f"under DP over {SHOWN[policy]}, mean", paper, mean(leads), told)
    rows = [([gpus, plan.data], plan) for gpus, plans in found.items() for plan in plans.values()]
    figure.plans(["gpus", "data_tokens_per_second"], rows)
    policies = [WITH_REPLICAS, MLORA, LORAFUSION]
    series = [Series(f"{SHOWN[policy]}, DP", [tokens(policy, gpus) for gpus in GPUS]) for policy in policies]
    series.append(Series("LoRAFusion, jobs", [one.data * gpus / GPUS[0] for gpus in GPUS]))
    panel = Panel("70B, 4 adapters a job, Het", "data tokens/s", GPUS, series, lines=True)
    see = "One job over replicas is as fast as several jobs"
    figure.picture("LoRAFusion figure 16: by H100s", [panel], see=see)
