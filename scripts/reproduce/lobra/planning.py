"""The appendix's planning time: seconds to plan 70B and four tasks, by GPUs. Differs from run to run."""

from .. import Braid, Panel, Report, Series
from .settings import FOUR, LOBRA, SEVENTY_B

PAPER = {32: 1.71, 48: 48.84, 64: 148.81, 128: 239.84, 256: 428.08}  # 64 threads


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("planning", "planning")
    rows, ours = [], []
    for gpus, paper in PAPER.items():
        plan = SEVENTY_B.compare(braid, [LOBRA], tuple(FOUR), gpus // 8)[0]
        figure.claim(f"seconds to plan {gpus} GPUs", paper, plan.planning_seconds, plan.command)
        rows.append([gpus, plan.planning_seconds, paper, plan.deployment, plan.step_seconds, plan.error, plan.command])
        ours.append(plan.planning_seconds)
    columns = ["gpus", "seconds", "the_papers", "deployment", "step_seconds", "error", "command"]
    figure.table(columns, rows)
    series = [Series("ours, one core", ours), Series("the paper's, 64 threads", list(PAPER.values()))]
    panel = Panel("70B, 4 tasks, A800s", "seconds", list(PAPER), series, lines=True, logarithmic=True)
    see = "Seconds, where the paper's solver takes minutes"
    figure.picture("LobRA, appendix: planning time", [panel], see=see)
