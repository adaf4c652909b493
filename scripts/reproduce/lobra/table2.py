"""Table 2: the deployments of Task-Fused and LobRA, and what the paper's own would take."""

import re

from .. import Braid, Report
from .settings import LOBRA, SETUPS, TASK_FUSED

# Replicas as (tp, pp, how many).
PAPER = {
    "7B": {TASK_FUSED: [(8, 1, 2)], LOBRA: [(1, 1, 6), (2, 1, 1), (8, 1, 1)]},
    "32B": {TASK_FUSED: [(8, 1, 8)], LOBRA: [(1, 6, 4), (2, 2, 4), (4, 1, 2), (8, 1, 2)]},
    "70B": {TASK_FUSED: [(16, 1, 4)], LOBRA: [(2, 4, 4), (4, 2, 1), (8, 1, 1), (16, 1, 1)]},
}


def replicas_of(deployment: str) -> int:
    """Of "2 x tp 8, pp 1 | tp 1, pp 2", or "tp 8, pp 1, 2 replicas"."""
    count = 0
    for part in deployment.split(" | "):
        times = re.match(r"(\d+) x ", part) or re.search(r"(\d+) replicas", part)
        count += int(times[1]) if times else 1
    return count


def spelled(replicas: list[tuple[int, int, int]]) -> str:
    return " | ".join(f"{count} x tp {tp}, pp {pp}" for tp, pp, count in replicas)


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("table 2", "table2")
    rows = []
    for name, setup in SETUPS.items():
        for policy, plan in zip(PAPER[name], setup.compare(braid, list(PAPER[name]))):
            paper = PAPER[name][policy]
            theirs = sum(count for _, _, count in paper)
            ours = replicas_of(plan.deployment) if plan.deployment else None
            figure.claim(f"{name}: replicas of {policy.split(':')[0]}", theirs, ours, plan.command)
            rows.append(([name, spelled(paper), setup.gpu_seconds(plan)], plan))
    figure.plans(["backbone", "the_papers", "gpu_seconds"], rows)
