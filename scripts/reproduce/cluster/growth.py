"""How long simulations take, from 10,000 to a million jobs: drawn from what scripts/benchmark.sh cluster measured."""

import re

from .. import Braid, Panel, Report, Series

LINE = re.compile(r"^(replay_trace|share_instances)/(\w+)/jobs:(\d+)/gpus:(\d+)/iterations:\d+\s+([\d.]+) ms")
NAMES = {"replay_trace": "as recorded", "share_instances": "muxtune, planning included"}
JOBS = [10_000, 100_000, 1_000_000]


def make(_: Braid, report: Report) -> None:
    measured = report.folder / "benchmarks.txt"
    if not measured.exists():
        return
    found = filter(None, map(LINE.match, measured.read_text().splitlines()))
    seconds = {(line[1], line[2], int(line[3])): float(line[5]) / 1000 for line in found}
    panels = []
    for kind, title in NAMES.items():
        whats = [what for of, what, jobs in seconds if of == kind and jobs == JOBS[-1]]
        series = [Series(what, [seconds[kind, what, jobs] for jobs in JOBS]) for what in whats]
        least = seconds[kind, whats[0], JOBS[0]]
        series.append(Series("linear", [least * jobs / JOBS[0] for jobs in JOBS]))
        panels.append(Panel(title, "seconds on one core", [f"{jobs:,}" for jobs in JOBS], series, True, True))
    see = "A hundred times the jobs and GPUs take about three hundred times as long, a hundred times the instructions"
    report.figure("", "growth").picture("Jobs of a simulation, on 1,000 to 100,000 GPUs", panels, see=see)
