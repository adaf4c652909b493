"""Figure 18: collectives beside computing in tensor parallelism."""

from .. import Braid, Panel, Report, over, ratio, series_of
from .settings import FOUR_GPU_TENSOR, NEMO, ORCHESTRATED, QA, mixed

# Milliseconds and GPU utilizations that the paper measured of one layer.
SECONDS = {"one task": 43.2, "four, no overlap": 172.5, "four, overlap": 156.2}
UTILIZATION = {"one task": 0.825, "four, no overlap": 0.847, "four, overlap": 0.978}


def make(braid: Braid, report: Report) -> None:
    """Of whole steps in place of one layer; 32 x 128 tokens a task, so that four tasks fit at once."""
    figure = report.figure("18")
    one, four = (mixed([QA], count, 32) for count in (1, 4))
    plans = [
        FOUR_GPU_TENSOR.compare(braid, load, [policy], 1)[0]
        for load, policy in ((one, NEMO), (four, f"{ORCHESTRATED}:orchestration=off"), (four, ORCHESTRATED))
    ]
    alone, apart, overlapped = plans
    seconds, utilization = list(SECONDS.values()), list(UTILIZATION.values())
    for text, paper, ours, baseline in (
        ("without overlap, time over one", seconds[1] / seconds[0], apart, alone),
        ("with overlap, time over without", seconds[2] / seconds[1], overlapped, apart),
    ):
        figure.claim(f"four tasks {text}", paper, over(ours, baseline, "step_seconds")[0], ours.command)
    for text, paper, plan in (("without", utilization[1], apart), ("with", utilization[2], overlapped)):
        text = f"four tasks {text} overlap, GPU utilization over one task's"
        figure.claim(text, paper / utilization[0], ratio(plan.utilization, alone.utilization), plan.command)
    figure.plans(["case"], [([case], plan) for case, plan in zip(SECONDS, plans)])
    series = [series_of("step", plans, "step_seconds")]
    groups = ["one task", "four", "four, overlap"]
    title = "MuxTune figure 18: overlap in tensor parallelism (thin: proven lower bound)"
    see = "Four tasks take two thirds of the time when collectives of one go beside compute of another"
    figure.picture(title, [Panel("llama2-7b, tp 4, 32 x 128 tokens", "seconds a step", groups, series)], see=see)
