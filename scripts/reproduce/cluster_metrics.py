"""Figures of summary.json, as the tables of cluster studies have them."""

from dataclasses import dataclass

from cluster_studies import half_width, mean


@dataclass(frozen=True)
class Metric:
    name: str
    column: str
    unit: float = 1
    better: str | None = None  # "less" or "more"


METRICS = [
    Metric("completion_mean_seconds", "completion_mean_hours", 3600, "less"),
    Metric("completion_median_seconds", "completion_median_hours", 3600, "less"),
    Metric("completion_p90_seconds", "completion_p90_hours", 3600, "less"),
    Metric("completion_p99_seconds", "completion_p99_hours", 3600, "less"),
    Metric("queueing_mean_seconds", "queueing_mean_hours", 3600, "less"),
    Metric("tokens_per_second", "tokens_per_second", 1, "more"),
    Metric("saturated_tokens_per_second", "saturated_tokens_per_second", 1, "more"),
    Metric("makespan_seconds", "makespan_hours", 3600, "less"),
    Metric("gpu_allocation", "gpu_allocation"),
    Metric("gpu_utilization", "gpu_utilization", 1, "more"),
    Metric("fragmentation", "fragmentation"),
    Metric("finish_time_fairness_mean", "fairness_mean", 1, "less"),
    Metric("finish_time_fairness_max", "fairness_max", 1, "less"),
    Metric("deadlines_met", "deadlines_met", 1, "more"),
    Metric("preemptions", "preemptions"),
    Metric("gpu_hours", "gpu_hours", 1, "less"),
    Metric("energy_kwh", "energy_kwh", 1, "less"),
]


def columns(metrics: list[Metric] = METRICS) -> list[str]:
    return [name for metric in metrics for name in (metric.column, f"{metric.column}_ci95")]


def cells(group: dict, metrics: list[Metric] = METRICS) -> list:
    """Mean and half of the 95 % interval of each."""
    row = []
    for metric in metrics:
        for value in (mean(group, metric.name), half_width(group, metric.name)):
            row.append(value / metric.unit if value is not None else None)
    return row


def worst_error(summary: dict, place: int) -> float | None:
    """The 99th percentile of a group's estimates' errors, of its worst seed; none where nothing was estimated."""
    seeds = summary["groups"][place]["seeds"]
    runs = summary["runs"][place * seeds : (place + 1) * seeds]
    return max((run["estimates"]["error_p99"] for run in runs if "estimates" in run), default=None)


WINNER_COLUMNS = ["metric", "best", "value", "ci95", "as_good", "of"]


def winners(groups: dict) -> list[list]:
    """Of combinations by name, which is best by each metric, the first of equal ones; how many cannot be told from it,
    itself among them, as their 95 % intervals overlap; and of how many."""
    rows = []
    for metric in METRICS:
        if metric.better is None:
            continue
        having = {key: mean(group, metric.name) for key, group in groups.items()}
        having = {key: value for key, value in having.items() if value is not None}
        if not having:
            continue
        best = (min if metric.better == "less" else max)(having, key=having.get)
        width = half_width(groups[best], metric.name) or 0
        as_good = [
            key
            for key, value in having.items()
            if abs(value - having[best]) <= width + (half_width(groups[key], metric.name) or 0)
        ]
        value = having[best] / metric.unit
        rows.append([metric.column, best, value, width / metric.unit, len(as_good), len(having)])
    return rows
