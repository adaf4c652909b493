"""One thing varied at a time, to show what a missed claim depends on."""

from .. import Braid, Report
from .varied_chunks import chunk_sizes, chunk_sizes_of_random_loads
from .varied_loads import batches, microbatch_counts, mixes
from .varied_parts import htasks, launch_rules, microbatch_sizes, parts, residence
from .varied_systems import launch_costs, links, schedules

STUDIES = [
    batches,
    microbatch_counts,
    mixes,
    launch_costs,
    parts,
    microbatch_sizes,
    residence,
    links,
    htasks,
    schedules,
]
STUDIES += [chunk_sizes, chunk_sizes_of_random_loads, launch_rules]


def make(braid: Braid, report: Report) -> None:
    rows = [row for study in STUDIES for row in study(braid)]
    report.table("varied", ["figure", "quantity", "varied", "value", "ours", "command"], rows)
