"""Figure 19: orchestration alone, in tensor and in pipeline parallelism."""

from .. import Braid, Dataset, Panel, Report, over, series_of
from .settings import LLAMA_7B, NEMO, ORCHESTRATED, TWO_GPU_TENSOR, mixed

TASKS = [2, 4, 8]
LENGTHS = [128, 64, 32]  # the figure's first
CASES = {  # setup, microbatches, over NeMo by tasks
    "tensor, 1 microbatch": (TWO_GPU_TENSOR, 1, (1.20, 1.22, 1.23)),
    "pipeline, 8 microbatches": (LLAMA_7B, 8, (1.24, 1.35, 1.36)),
    "pipeline, 4 microbatches": (LLAMA_7B, 4, (None, None, 1.59)),
}
NAMES = ["NeMo", "MuxTune, orchestration only"]


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("19")
    rows, panels = [], []
    for case, (setup, count, papers) in CASES.items():
        found = {
            (length, tasks): setup.compare(
                braid,
                mixed([Dataset(f"length{length}", length, length / 2, 0.4)], tasks, 8 * count),
                [NEMO, ORCHESTRATED],
                count,
            )
            for length in LENGTHS
            for tasks in TASKS
        }
        rows += [([case, *key], plan) for key, plans in found.items() for plan in plans]
        drawn = {tasks: found[LENGTHS[0], tasks] for tasks in TASKS}
        for (tasks, (nemo, ours)), paper in zip(drawn.items(), papers):
            if paper:
                text = f"{case}, {tasks} tasks over NeMo" if all(papers) else f"{case} over NeMo, up to"
                figure.claim(text, paper, *over(ours, nemo))
        series = [series_of(name, [plans[index] for plans in drawn.values()]) for index, name in enumerate(NAMES)]
        groups = [f"{tasks} tasks" for tasks in TASKS]
        panels.append(Panel(f"{case}, length {LENGTHS[0]}", "effective tokens/s", groups, series))
    figure.plans(["case", "length", "tasks"], rows)
    see = "Orchestration alone is worth 1.15 to 1.56 times NeMo's throughput"
    figure.picture("MuxTune figure 19: orchestration only (thin: at the proven lower bound)", panels, see=see)
