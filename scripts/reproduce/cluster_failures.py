"""What failures cost: GPUs that fail more and less often, checkpoints more and less frequent."""

from cluster_studies import Studies, Trace, half_width, mean
from report import Panel, Report, Series

POLICIES = {"exclusive": "nemo:schedule=1f1b", "muxtune": "muxtune"}
MTBF_HOURS = ["100000", "10000", "1000", "300"]
CHECKPOINT_MINUTES = ["10", "30", "120"]
METRICS = [
    ("completion_mean_seconds", "completion_mean_hours", 3600),
    ("completion_p99_seconds", "completion_p99_hours", 3600),
    ("restarts", "restarts", 1),
    ("lost_gpu_hours", "lost_gpu_hours", 1),
    ("out_of_service", "out_of_service", 1),
    ("gpu_hours", "gpu_hours", 1),
]


def failures(studies: Studies, report: Report) -> None:
    trace = Trace("generated", "generated.csv")
    words = ["--trace", trace.file, "--gpus", "128", "--load", "0.9", "--seeds", "3", "--audit", "0"]
    words += ["--policy", ",".join(POLICIES.values()), "--node-mtbf-hours", "100000"]
    words += ["--sweep", "gpu-mtbf-hours=" + ",".join(MTBF_HOURS)]
    words += ["--sweep", "checkpoint-minutes=" + ",".join(CHECKPOINT_MINUTES)]
    summary, command = studies.run(*words)
    labels = {policy: label for label, policy in POLICIES.items()}
    rows, lost = [], {}
    for group in summary["groups"]:
        key = group["gpu-mtbf-hours"], group["checkpoint-minutes"], labels[group["policy"]]
        lost[key] = mean(group, "lost_gpu_hours")
        row = list(key)
        for metric, _, unit in METRICS:
            value, width = mean(group, metric), half_width(group, metric)
            row += [value / unit if value is not None else None, width / unit if width is not None else None]
        rows.append(row + [command])
    columns = ["gpu_mtbf_hours", "checkpoint_minutes", "policy"]
    for _, column, _ in METRICS:
        columns += [column, f"{column}_ci95"]
    report.table("failures", columns + ["command"], rows)
    series = [
        Series(f"{label}, every {minutes} min", [lost[hours, minutes, label] for hours in MTBF_HOURS])
        for label in POLICIES
        for minutes in CHECKPOINT_MINUTES
    ]
    panel = Panel("first come first served, load 0.9", "GPU-hours of work lost", MTBF_HOURS, series, True, True)
    report.picture("failures", "none", "128 A40s by a GPU's mean hours between failures", [panel])
