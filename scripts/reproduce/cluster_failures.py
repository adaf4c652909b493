"""What failures cost: GPUs that fail more and less often, checkpoints more and less frequent."""

from cluster_metrics import Metric, cells, columns
from cluster_schedulers import GENERATED_JOBS
from cluster_studies import Studies, mean
from report import Panel, Report, Series

POLICIES = {"exclusive": "nemo:schedule=1f1b", "muxtune": "muxtune"}
MTBF_HOURS = ["100000", "10000", "1000", "300"]
CHECKPOINT_MINUTES = ["10", "30", "120"]
METRICS = [
    Metric("completion_mean_seconds", "completion_mean_hours", 3600),
    Metric("completion_p99_seconds", "completion_p99_hours", 3600),
    Metric("restarts", "restarts"),
    Metric("lost_gpu_hours", "lost_gpu_hours"),
    Metric("out_of_service", "out_of_service"),
    Metric("gpu_hours", "gpu_hours"),
    Metric("energy_kwh", "energy_kwh"),
]


def failures(studies: Studies, report: Report) -> None:
    trace = studies.generated(GENERATED_JOBS)
    words = ["--trace", trace.file, "--gpus", "128", "--load", "0.9", "--seeds", "3"]
    words += ["--policy", ",".join(POLICIES.values()), "--node-mtbf-hours", "100000"]
    words += ["--sweep", "gpu-mtbf-hours=" + ",".join(MTBF_HOURS)]
    words += ["--sweep", "checkpoint-minutes=" + ",".join(CHECKPOINT_MINUTES)]
    summary, command = studies.run(*words)
    labels = {policy: label for label, policy in POLICIES.items()}
    rows, lost = [], {}
    for group in summary["groups"]:
        key = group["gpu-mtbf-hours"], group["checkpoint-minutes"], labels[group["policy"]]
        lost[key] = mean(group, "lost_gpu_hours")
        rows.append([*key, *cells(group, METRICS), command])
    first = ["gpu_mtbf_hours", "checkpoint_minutes", "policy"]
    report.table("failures", [*first, *columns(METRICS), "command"], rows)
    series = [
        Series(f"{label}, every {minutes} min", [lost[hours, minutes, label] for hours in MTBF_HOURS])
        for label in POLICIES
        for minutes in CHECKPOINT_MINUTES
    ]
    panel = Panel("first come first served, load 0.9", "GPU-hours of work lost", MTBF_HOURS, series, True, True)
    report.picture("failures", "none", "128 A40s by a GPU's mean hours between failures", [panel])
