"""One thing varied at a time, to show what a missed claim depends on, 7B."""

from .. import Braid, Report, saved
from .settings import LOBRA, SEVEN_B, TASK_FUSED

TAILS = [0.25, 0.5, 1, 1.5]
WAYS = {
    "as in figure 7": (TASK_FUSED, LOBRA),
    "capacities found exactly": ("task-fused", "lobra"),
    "ranges of 128 tokens": (f"{TASK_FUSED}:interval=128", f"{LOBRA}:interval=128"),
    "LoRAFusion's bins": (TASK_FUSED, f"{LOBRA}:rows=bins"),
    "the deployment as a program": (TASK_FUSED, f"{LOBRA}:deployment=solved"),
}


def make(braid: Braid, report: Report) -> None:
    rows = []

    def add(varied: str, value: float | str, policies: tuple[str, str], tails: float = 1) -> None:
        fused, lobra = SEVEN_B.compare(braid, list(policies), tails=tails)
        part, told = saved(lobra, fused)
        seconds = [SEVEN_B.gpu_seconds(fused), SEVEN_B.gpu_seconds(lobra)]
        rows.append([varied, value, part, *seconds, fused.deployment, lobra.deployment, told])

    for way, policies in WAYS.items():
        add("way", way, policies)
    for tails in TAILS:
        add("skewness of lengths, times", tails, (TASK_FUSED, LOBRA), tails)
    columns = ["varied", "value", "saved", "task_fused_gpu_seconds", "lobra_gpu_seconds"]
    report.table("varied", [*columns, "task_fused_deployment", "lobra_deployment", "commands"], rows)
