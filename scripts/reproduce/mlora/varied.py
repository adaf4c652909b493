"""One thing varied at a time, to show what a missed claim depends on."""

from .. import Braid, Report
from .varied_links import fsdp_units, links, staging
from .varied_loads import filling, launch_costs, microbatch_counts, splits, task_counts, waiting

STUDIES = [launch_costs, waiting, splits, task_counts, microbatch_counts, filling, links, fsdp_units, staging]


def make(braid: Braid, report: Report) -> None:
    rows = [row for study in STUDIES for row in study(braid)]
    report.table("varied", ["figure", "quantity", "varied", "value", "ours", "command"], rows)
