"""Every scheduler on jobs as they were recorded: of many sizes, of many virtual clusters."""

from .. import Braid, Panel, Report, Series
from .schedulers import LOADS, PRIORITIES, SCHEDULERS, SWEEP, TERMS
from .study import WINNER_COLUMNS, ask, cells, columns, completion_hours, winners
from .traces import philly_month, public

RECORDED = [name for name in SCHEDULERS if name != "goodput"] + ["priority"]  # jobs keep their GPUs
GPUS = "512"
DRAWN_LOAD = "0.9"


def make(braid: Braid, report: Report) -> None:
    rows, best, panels = [], [], []
    traces = [philly_month(braid, "2017-11-01", "2017-12-01")]
    traces += [public(braid, f"itp-{cluster}", f"itp_cluster{cluster}.csv") for cluster in ("02", "05")]
    for trace in filter(None, traces):
        words = ["--trace", trace.file, "--gpus", GPUS, "--jobs", "as-recorded", "--scheduler", ",".join(RECORDED)]
        summary, command = ask(braid, *words, *SWEEP, *TERMS, *PRIORITIES)
        groups = {(group["load"], group["scheduler"]): group for group in summary["groups"]}
        rows += [[trace.name, *key, *cells(group), command] for key, group in groups.items()]
        for load in LOADS:
            of_load = {scheduler: group for (at, scheduler), group in groups.items() if at == load}
            best += [[trace.name, load, *row] for row in winners(of_load)]
        hours = [completion_hours(groups[DRAWN_LOAD, name]) for name in RECORDED]
        title = f"{trace.name}, load {DRAWN_LOAD}"
        panels.append(Panel(title, "mean completion, hours", RECORDED, [Series("mean", hours)]))
    if not rows:
        return
    report.table("recorded", ["trace", "load", "scheduler", *columns(), "command"], rows)
    report.table("recorded-winners", ["trace", "load", *WINNER_COLUMNS], best)
    see = "Letting small jobs pass beats reservations; gittins and max-min come near srtf without knowing lengths"
    report.figure("", "recorded").picture(f"Jobs as recorded on {GPUS} GPUs", panels, see=see)
