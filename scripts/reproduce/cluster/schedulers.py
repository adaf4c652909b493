"""Schedulers with every way to share, at loads that a cluster can serve: what the paper leaves open."""

from .. import Braid, Panel, Report, Series
from .study import LABELS, POLICIES, SEEDS, WINNER_COLUMNS, ask, cells, columns, completion_hours, groups_of
from .study import winners, worst_error
from .traces import Trace, four_kinds

SCHEDULERS = ["fcfs", "fcfs-any", "easy", "conservative", "sjf", "srtf", "srsf", "las", "gittins", "max-min", "ftf"]
SCHEDULERS += ["drf", "edf", "deadline", "budget", "goodput", "mux"]
# Public traces tell none of them. `mux` gives jobs of a priority instances of their own: only `priority` has any.
TERMS = ["--deadline-slack", "1.5:4", "--budget-slack", "1:2"]
PRIORITIES = ["--priorities", "3"]
LOADS = ["0.7", "0.9", "1.1"]
SWEEP = ["--sweep", "load=" + ",".join(LOADS), "--seeds", str(SEEDS)]
GPUS = 128
COLUMNS = ["trace", "load", "scheduler", "policy", *columns(), "estimate_error_p99", "command"]
Groups = dict[tuple[str, str, str], dict]  # by load, scheduler and way to share


def make(braid: Braid, report: Report) -> None:
    study(braid, report, four_kinds(braid), GPUS, PRIORITIES)


def study(braid: Braid, report: Report, traces: list[Trace], gpus: int, priorities: list[str]) -> None:
    """`priorities`: flags that give jobs some, where a trace has none of its own."""
    rows, best = [], []
    for trace in traces:
        groups = run(braid, trace, gpus, priorities, rows)
        for load in LOADS:
            of_load = {" ".join(key[1:]): group for key, group in groups.items() if key[0] == load}
            best += [[trace.name, load, *row] for row in winners(of_load)]
        picture(report, trace, gpus, groups)
    report.table("schedulers", COLUMNS, rows)
    report.table("winners", ["trace", "load", *WINNER_COLUMNS], best)


def run(braid: Braid, trace: Trace, gpus: int, priorities: list[str], rows: list) -> Groups:
    groups: Groups = {}
    for names, more in (SCHEDULERS, []), (["priority"], priorities):
        words = ["--trace", trace.file, "--gpus", str(gpus), "--scheduler", ",".join(names)]
        summary, command = ask(braid, *words, "--policy", ",".join(POLICIES.values()), *SWEEP, *TERMS, *more)
        for group, runs in groups_of(summary):
            key = group["load"], group["scheduler"], LABELS[group["policy"]]
            groups[key] = group
            rows.append([trace.name, *key, *cells(group), worst_error(runs), command])
    return groups


def picture(report: Report, trace: Trace, gpus: int, groups: Groups) -> None:
    names = list(dict.fromkeys(scheduler for _, scheduler, _ in groups))
    panels = []
    for load in LOADS:
        series = [Series(label, [completion_hours(groups[load, name, label]) for name in names]) for label in POLICIES]
        panels.append(Panel(f"load {load}", "mean completion, hours", names, series))
    title = f"{trace.name}: {gpus} GPUs, LLaMA7B, mixed tasks"
    report.figure("", f"schedulers-{trace.name}").picture(title, panels)
