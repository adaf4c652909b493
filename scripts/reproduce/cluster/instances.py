"""Instances of other sizes, first come first served at a load of 0.9; recorded durations stay those of a node."""

from .. import Braid, Report
from .schedulers import GPUS
from .study import EXCLUSIVE, LABELS, MUXTUNE, SEEDS, ask, cells, columns, groups_of, worst_error
from .traces import four_kinds

SIZES = ["1", "2", "4", "8"]


def make(braid: Braid, report: Report) -> None:
    rows = []
    for trace in four_kinds(braid):
        words = ["--trace", trace.file, "--gpus", str(GPUS), "--job-gpus", "4", "--load", "0.9", "--seeds", str(SEEDS)]
        words += ["--policy", f"{EXCLUSIVE},{MUXTUNE}", "--sweep", "instance-gpus=" + ",".join(SIZES)]
        summary, command = ask(braid, *words)
        for group, runs in groups_of(summary):
            key = group["instance-gpus"], LABELS[group["policy"]]
            rows.append([trace.name, *key, *cells(group), worst_error(runs), command])
    report.table("instances", ["trace", "instance_gpus", "policy", *columns(), "estimate_error_p99", "command"], rows)
