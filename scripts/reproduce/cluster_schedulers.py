"""What the paper leaves open: every scheduler with every way to share, at loads that a cluster can serve."""

from cluster_studies import Studies, Trace, half_width, mean
from report import Panel, Report, Series

POLICIES = {"exclusive": "nemo:schedule=1f1b", "sl-peft": "sl-peft", "mlora": "mlora", "muxtune": "muxtune"}
# Without `priority`, which is fcfs where all jobs have the same.
SCHEDULERS = ["fcfs", "fcfs-any", "easy", "conservative", "sjf", "srtf", "srsf", "las", "gittins", "max-min", "ftf"]
SCHEDULERS += ["drf", "edf", "deadline", "budget", "goodput", "mux"]
# These traces tell neither.
TERMS = ["--deadline-slack", "1.5:4", "--budget-slack", "1:2"]
LOADS = ["0.7", "0.9", "1.1"]
GPUS = "128"
INSTANCES = ["1", "2", "4", "8"]
JOBS = 2000
# Metric, column, unit, whether less is better.
METRICS = [
    ("completion_mean_seconds", "completion_mean_hours", 3600, True),
    ("completion_p99_seconds", "completion_p99_hours", 3600, True),
    ("queueing_mean_seconds", "queueing_mean_hours", 3600, True),
    ("finish_time_fairness_mean", "fairness_mean", 1, True),
    ("finish_time_fairness_max", "fairness_max", 1, True),
    ("gpu_hours", "gpu_hours", 1, True),
    ("energy_kwh", "energy_kwh", 1, True),
    ("makespan_seconds", "makespan_hours", 3600, True),
    ("deadlines_met", "deadlines_met", 1, False),
    ("preemptions", "preemptions", 1, True),
]


def schedulers(studies: Studies, report: Report) -> None:
    rows, winners, sizes = [], [], []
    for trace in _traces(studies):
        groups = _run(studies, trace, rows)
        sizes += _sizes(studies, trace)
        winners += _winners(trace, groups)
        _picture(report, trace, groups)
    columns = ["trace", "load", "scheduler", "policy"]
    for _, column, _, _ in METRICS:
        columns += [column, f"{column}_ci95"]
    report.table("schedulers", columns + ["command"], rows)
    columns = ["trace", "instance_gpus", "policy", "completion_mean_hours", "ci95", "completion_p99_hours"]
    report.table("instances", columns + ["gpu_allocation", "command"], sizes)
    report.table("winners", ["trace", "load", "metric", "scheduler", "policy", "value", "fcfs_exclusive"], winners)


def _traces(studies: Studies) -> list[Trace]:
    """Generated; Philly's virtual cluster with the most GPU-seconds; ITP."""
    studies.make("trace", "generate", "--jobs", str(JOBS), "--seed", "1", "--out", "generated.csv")
    traces = [Trace("generated", "generated.csv")]
    philly = studies.public("philly-ee9e8c", "philly.csv")
    if philly.file:
        studies.make(
            "trace", "slice", "philly.csv", "--vc", "ee9e8c", "--from", "2017-10-01", "--out", "philly-ee9e8c.csv"
        )
        traces.append(Trace(philly.name, "philly-ee9e8c.csv"))
    itp = studies.public("itp-02", "itp_cluster02.csv")
    if itp.file:
        traces.append(itp)
    return traces


def _run(studies: Studies, trace: Trace, rows: list) -> dict:
    summary, command = studies.run(
        *("--trace", trace.file, "--gpus", GPUS, "--scheduler", ",".join(SCHEDULERS)),
        *("--policy", ",".join(POLICIES.values()), "--sweep", "load=" + ",".join(LOADS)),
        *("--seeds", "3", "--audit", "0", *TERMS),
    )
    found = {}
    labels = {policy: label for label, policy in POLICIES.items()}
    for group in summary["groups"]:
        label = labels[group["policy"]]
        found[group["load"], group["scheduler"], label] = group
        row = [trace.name, group["load"], group["scheduler"], label]
        for metric, _, unit, _ in METRICS:
            value, width = mean(group, metric), half_width(group, metric)
            row += [value / unit if value is not None else None, width / unit if width is not None else None]
        rows.append(row + [command])
    return found


def _sizes(studies: Studies, trace: Trace) -> list:
    """Instances of other sizes, first come first served at a load of 0.9; recorded durations stay those of a node."""
    policies = {label: POLICIES[label] for label in ("exclusive", "muxtune")}
    summary, command = studies.run(
        *("--trace", trace.file, "--gpus", GPUS, "--job-gpus", "4", "--load", "0.9", "--seeds", "3", "--audit", "0"),
        *("--policy", ",".join(policies.values()), "--sweep", "instance-gpus=" + ",".join(INSTANCES)),
    )
    labels = {policy: label for label, policy in policies.items()}
    rows = []
    for group in summary["groups"]:
        completion = mean(group, "completion_mean_seconds") / 3600, half_width(group, "completion_mean_seconds") / 3600
        row = [trace.name, group["instance-gpus"], labels[group["policy"]], *completion]
        rows.append(row + [mean(group, "completion_p99_seconds") / 3600, mean(group, "gpu_allocation"), command])
    return rows


def _winners(trace: Trace, groups: dict) -> list:
    rows = []
    for load in LOADS:
        for metric, column, unit, less in METRICS:
            if metric == "preemptions":
                continue
            having = {key: mean(group, metric) for key, group in groups.items() if key[0] == load}
            having = {key: value for key, value in having.items() if value is not None}
            best = (min if less else max)(having, key=having.get)
            base = having.get((load, "fcfs", "exclusive"))
            compared = base / unit if base else None
            rows.append([trace.name, load, column, best[1], best[2], having[best] / unit, compared])
    return rows


def _picture(report: Report, trace: Trace, groups: dict) -> None:
    panels = []
    for load in LOADS:
        series = [
            Series(label, [mean(groups[load, name, label], "completion_mean_seconds") / 3600 for name in SCHEDULERS])
            for label in POLICIES
        ]
        panels.append(Panel(f"load {load}", "mean completion, hours", SCHEDULERS, series))
    report.picture(f"schedulers-{trace.name}", "none", f"{trace.name}: 128 A40s, LLaMA7B, mixed tasks", panels)
