"""Where elastic instances of one to eight GPUs are placed: the only ones here that can leave nodes in parts."""

from .. import Braid, Report
from .schedulers import GPUS
from .study import EXCLUSIVE, SEEDS, ask, cells, columns
from .traces import four_kinds

PLACEMENTS = ["packed", "spread", "frag"]


def make(braid: Braid, report: Report) -> None:
    rows = []
    for trace in four_kinds(braid):
        words = ["--trace", trace.file, "--gpus", str(GPUS), "--load", "0.9", "--seeds", str(SEEDS)]
        words += ["--scheduler", "goodput", "--policy", EXCLUSIVE, "--placement", ",".join(PLACEMENTS)]
        summary, command = ask(braid, *words)
        rows += [[trace.name, group["placement"], *cells(group), command] for group in summary["groups"]]
    report.table("placements", ["trace", "placement", *columns(), "command"], rows)
