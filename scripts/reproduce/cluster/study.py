"""Runs of `braid cluster`, and figures of their summaries as the tables have them."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from .. import Braid

EXCLUSIVE, SL_PEFT, MLORA, MUXTUNE = (
    f"{policy}:recompute=none" for policy in ("nemo:schedule=1f1b", "sl-peft", "mlora", "muxtune")
)
POLICIES = {"exclusive": EXCLUSIVE, "sl-peft": SL_PEFT, "mlora": MLORA, "muxtune": MUXTUNE}
LABELS = {policy: label for label, policy in POLICIES.items()}
SEEDS = 3
HOUR = 3600


def ask(braid: Braid, *words: str) -> tuple[dict, str]:
    """summary.json of a study, and its command."""
    # 1: estimates were too far off; that is told in the table.
    return braid.ask("cluster", *words, "--quiet", statuses=(0, 1)), shlex.join(["braid", "cluster", *words])


def mean(group: dict, metric: str) -> float | None:
    return group["metrics"].get(metric, {}).get("mean")


def half_width(group: dict, metric: str) -> float | None:
    return group["metrics"].get(metric, {}).get("ci95")


def completion_hours(group: dict) -> float:
    return mean(group, "completion_mean_seconds") / HOUR


@dataclass(frozen=True)
class Metric:
    name: str
    column: str = ""
    unit: float = 1
    better: str | None = None  # "less" or "more"


METRICS = [
    Metric("completion_mean_seconds", "completion_mean_hours", HOUR, "less"),
    Metric("completion_median_seconds", "completion_median_hours", HOUR, "less"),
    Metric("completion_p90_seconds", "completion_p90_hours", HOUR, "less"),
    Metric("completion_p99_seconds", "completion_p99_hours", HOUR, "less"),
    Metric("queueing_mean_seconds", "queueing_mean_hours", HOUR, "less"),
    Metric("tokens_per_second", better="more"),
    Metric("saturated_tokens_per_second", better="more"),
    Metric("makespan_seconds", "makespan_hours", HOUR, "less"),
    Metric("gpu_allocation"),
    Metric("gpu_utilization", better="more"),
    Metric("fragmentation"),
    Metric("finish_time_fairness_mean", "fairness_mean", better="less"),
    Metric("finish_time_fairness_max", "fairness_max", better="less"),
    Metric("deadlines_met", better="more"),
    Metric("preemptions"),
    Metric("gpu_hours", better="less"),
    Metric("energy_kwh", better="less"),
]


def columns(metrics: list[Metric] = METRICS) -> list[str]:
    return [name for metric in metrics for name in (column_of(metric), f"{column_of(metric)}_ci95")]


def column_of(metric: Metric) -> str:
    return metric.column or metric.name


def cells(group: dict, metrics: list[Metric] = METRICS) -> list:
    """Mean and half of the 95 % interval of each."""
    values = [of(group, metric.name) for metric in metrics for of in (mean, half_width)]
    units = [metric.unit for metric in metrics for _ in range(2)]
    return [value / unit if value is not None else None for value, unit in zip(values, units)]


def groups_of(summary: dict) -> Iterator[tuple[dict, list[dict]]]:
    """Each combination of settings, and its runs, one a seed."""
    at = 0
    for group in summary["groups"]:
        yield group, summary["runs"][at : at + group["seeds"]]
        at += group["seeds"]


def worst_error(runs: list[dict]) -> float | None:
    """The 99th percentile of the estimates' errors, of the worst seed; none where nothing was estimated."""
    return max((run["estimates"]["error_p99"] for run in runs if "estimates" in run), default=None)


WINNER_COLUMNS = ["metric", "best", "value", "ci95", "as_good", "of"]


def winners(groups: dict) -> list[list]:
    """Of combinations by name, which is best by each metric, the first of equal ones; how many cannot be told from it,
    itself among them, as their 95 % intervals overlap; and of how many."""
    rows = []
    for metric in METRICS:
        means = {key: mean(group, metric.name) for key, group in groups.items()}
        means = {key: value for key, value in means.items() if value is not None}
        if metric.better is None or not means:
            continue
        best = (min if metric.better == "less" else max)(means, key=means.get)
        widths = {key: half_width(groups[key], metric.name) or 0 for key in means}
        as_good = sum(abs(value - means[best]) <= widths[best] + widths[key] for key, value in means.items())
        told = [means[best] / metric.unit, widths[best] / metric.unit]
        rows.append([column_of(metric), best, *told, as_good, len(means)])
    return rows
