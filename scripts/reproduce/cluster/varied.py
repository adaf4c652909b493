"""What one change at a time does to MuxTune's lead of figure 21(b), on the generated trace over QA."""

from .. import Braid, Report
from .fig21b import METRIC, POLICIES
from .study import ask, mean

CHANGES = {
    "none": [],
    "batches of 8, 16, 32": ["--batch-sizes", "8,16,32"],
    "instances of 2 GPUs": ["--instance-gpus", "2"],
    "instances of 8 GPUs": ["--instance-gpus", "8"],
    "at most 4 tasks": ["--most-tasks", "4"],
    "at most 16 tasks": ["--most-tasks", "16"],
    "re-planning takes 10 s": ["--replan-seconds", "10"],
    "llama2-13b": ["--backbone", "llama2-13b"],
}


def make(braid: Braid, report: Report) -> None:
    rows = []
    for change, words in CHANGES.items():
        summary, command = ask(braid, "--datasets", "qa", "--policy", ",".join(POLICIES.values()), *words)
        *others, ours = (mean(group, METRIC) for group in summary["groups"])
        rows.append([change, *others, ours, *(ours / value for value in others), command])
    *others, _ = POLICIES
    report.table("varied", ["change", *POLICIES, *(f"MuxTune over {name}" for name in others), "command"], rows)
