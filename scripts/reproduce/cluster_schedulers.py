"""What the paper leaves open: schedulers with every way to share, at loads that a cluster can serve."""

from cluster_metrics import WINNER_COLUMNS, cells, columns, winners, worst_error
from cluster_studies import Studies, Trace, mean
from report import Panel, Report, Series

POLICIES = {"exclusive": "nemo:schedule=1f1b", "sl-peft": "sl-peft", "mlora": "mlora", "muxtune": "muxtune"}
SCHEDULERS = ["fcfs", "fcfs-any", "easy", "conservative", "sjf", "srtf", "srsf", "las", "gittins", "max-min", "ftf"]
SCHEDULERS += ["drf", "edf", "deadline", "budget", "goodput", "mux"]
# Of a long trace, for time's sake.
FEW_SCHEDULERS = ["fcfs", "sjf", "srtf", "las", "edf", "goodput", "mux"]
MANY_JOBS = 10000
# Public traces tell none of them. `mux` gives jobs of a priority instances of their own: only `priority` has any.
TERMS = ["--deadline-slack", "1.5:4", "--budget-slack", "1:2"]
PRIORITIES = ["--priorities", "3"]
LOADS = ["0.7", "0.9", "1.1"]
SEEDS = "3"
GPUS = 128
GENERATED_JOBS = 2000


def schedulers(studies: Studies, report: Report) -> None:
    study(studies, report, public_traces(studies), GPUS)


def study(studies: Studies, report: Report, traces: list[Trace], gpus: int, priorities: list[str] = PRIORITIES) -> None:
    rows, best = [], []
    for trace in traces:
        groups = _run(studies, trace, gpus, priorities, rows)
        for load in LOADS:
            named = {" ".join(key[1:]): group for key, group in groups.items() if key[0] == load}
            best += [[trace.name, load, *row] for row in winners(named)]
        _picture(report, trace, gpus, groups)
    first = ["trace", "load", "scheduler", "policy"]
    report.table("schedulers", [*first, *columns(), "estimate_error_p99", "command"], rows)
    report.table("winners", ["trace", "load", *WINNER_COLUMNS], best)


def public_traces(studies: Studies) -> list[Trace]:
    """Generated; Philly's week; its virtual cluster with the most GPU-seconds; ITP."""
    generated = studies.generated(GENERATED_JOBS)
    week = studies.public("week", "philly_resampled_week.csv")
    traces = [generated, week, studies.philly_vc("ee9e8c"), studies.public("itp-02", "itp_cluster02.csv")]
    return [trace for trace in traces if trace.file]


def _run(studies: Studies, trace: Trace, gpus: int, priorities: list[str], rows: list) -> dict:
    names = SCHEDULERS if studies.jobs(trace) < MANY_JOBS else FEW_SCHEDULERS
    asked = [(names, [])] + ([(["priority"], priorities)] if names is SCHEDULERS else [])
    labels = {policy: label for label, policy in POLICIES.items()}
    found = {}
    for these, more in asked:
        summary, command = studies.run(
            *("--trace", trace.file, "--gpus", str(gpus), "--scheduler", ",".join(these)),
            *("--policy", ",".join(POLICIES.values()), "--sweep", "load=" + ",".join(LOADS)),
            *("--seeds", SEEDS, *TERMS, *more),
        )
        for place, group in enumerate(summary["groups"]):
            key = group["load"], group["scheduler"], labels[group["policy"]]
            found[key] = group
            rows.append([trace.name, *key, *cells(group), worst_error(summary, place), command])
    return found


def _picture(report: Report, trace: Trace, gpus: int, groups: dict) -> None:
    names = list(dict.fromkeys(key[1] for key in groups))
    panels = []
    for load in LOADS:
        series = [
            Series(label, [mean(groups[load, name, label], "completion_mean_seconds") / 3600 for name in names])
            for label in POLICIES
        ]
        panels.append(Panel(f"load {load}", "mean completion, hours", names, series))
    report.picture(f"schedulers-{trace.name}", "none", f"{trace.name}: {gpus} GPUs, LLaMA7B, mixed tasks", panels)
