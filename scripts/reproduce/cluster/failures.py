"""What failures cost: GPUs that fail more and less often, checkpoints more and less frequent."""

from .. import Braid, Panel, Report, Series
from .study import EXCLUSIVE, HOUR, LABELS, MUXTUNE, SEEDS, Metric, ask, cells, columns, mean
from .traces import generated

MTBF_HOURS = ["100000", "10000", "1000", "300"]
CHECKPOINT_MINUTES = ["10", "30", "120"]
METRICS = [
    Metric("completion_mean_seconds", "completion_mean_hours", HOUR),
    Metric("completion_p99_seconds", "completion_p99_hours", HOUR),
    *(Metric(name) for name in ("restarts", "lost_gpu_hours", "out_of_service", "gpu_hours", "energy_kwh")),
]


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("", "failures")
    words = ["--trace", generated(braid).file, "--gpus", "128", "--load", "0.9", "--seeds", str(SEEDS)]
    words += ["--policy", f"{EXCLUSIVE},{MUXTUNE}", "--node-mtbf-hours", "100000"]
    words += ["--sweep", "gpu-mtbf-hours=" + ",".join(MTBF_HOURS)]
    words += ["--sweep", "checkpoint-minutes=" + ",".join(CHECKPOINT_MINUTES)]
    summary, command = ask(braid, *words)
    groups = {
        (group["gpu-mtbf-hours"], group["checkpoint-minutes"], LABELS[group["policy"]]): group
        for group in summary["groups"]
    }
    keys = ["gpu_mtbf_hours", "checkpoint_minutes", "policy"]
    rows = [[*key, *cells(group, METRICS), command] for key, group in groups.items()]
    figure.table([*keys, *columns(METRICS), "command"], rows)
    series = [
        Series(
            f"{label}, every {minutes} min",
            [mean(groups[hours, minutes, label], "lost_gpu_hours") for hours in MTBF_HOURS],
        )
        for label in ("exclusive", "muxtune")
        for minutes in CHECKPOINT_MINUTES
    ]
    panel = Panel("first come first served, load 0.9", "GPU-hours of work lost", MTBF_HOURS, series, True, True)
    see = "What is lost depends on how often state is saved, hardly on whether tasks share"
    figure.picture("128 A40s by a GPU's mean hours between failures", [panel], see=see)
