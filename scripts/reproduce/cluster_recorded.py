"""Every scheduler on jobs as they were recorded: of many sizes, of many virtual clusters."""

from cluster_metrics import WINNER_COLUMNS, cells, columns, winners
from cluster_schedulers import LOADS, PRIORITIES, SCHEDULERS, SEEDS, TERMS
from cluster_studies import Studies, mean
from report import Panel, Report, Series

RECORDED = [name for name in SCHEDULERS if name != "goodput"] + ["priority"]  # jobs keep their GPUs
GPUS = "512"


def recorded(studies: Studies, report: Report) -> None:
    rows, best, panels = [], [], []
    month = studies.philly_month("2017-11-01", "2017-12-01")
    itp = studies.public("itp-02", "itp_cluster02.csv"), studies.public("itp-05", "itp_cluster05.csv")
    for trace in (month, *itp):
        if not trace.file:
            continue
        summary, command = studies.run(
            *("--trace", trace.file, "--gpus", GPUS, "--jobs", "as-recorded", "--scheduler", ",".join(RECORDED)),
            *("--sweep", "load=" + ",".join(LOADS), "--seeds", SEEDS, *TERMS, *PRIORITIES),
        )
        groups = {(group["load"], group["scheduler"]): group for group in summary["groups"]}
        rows += [[trace.name, *key, *cells(group), command] for key, group in groups.items()]
        for load in LOADS:
            best += [
                [trace.name, load, *row]
                for row in winners({key[1]: group for key, group in groups.items() if key[0] == load})
            ]
        hours = [mean(groups["0.9", name], "completion_mean_seconds") / 3600 for name in RECORDED]
        panels.append(Panel(f"{trace.name}, load 0.9", "mean completion, hours", RECORDED, [Series("mean", hours)]))
    if not rows:
        return
    report.table("recorded", ["trace", "load", "scheduler", *columns(), "command"], rows)
    report.table("recorded-winners", ["trace", "load", *WINNER_COLUMNS], best)
    report.picture("recorded", "none", f"Jobs as recorded on {GPUS} GPUs", panels)
