#!/usr/bin/env python3
"""Regenerates MuxTune's cluster study and the wider one: `scripts/reproduce.sh cluster` runs it."""

import sys
from pathlib import Path

from cluster_failures import failures
from cluster_figure import figure_21b, varied
from cluster_growth import growth
from cluster_instances import instances, placements
from cluster_recorded import recorded
from cluster_scaling import figure_21a
from cluster_schedulers import schedulers
from cluster_studies import Studies
from report import Report


def main() -> None:
    studies = Studies(Path(sys.argv[1]))
    report = Report(Path(sys.argv[2]), "scripts/reproduce.sh cluster")
    for figure in (figure_21b, figure_21a, varied, schedulers, instances, placements, recorded, failures, growth):
        print(figure.__name__.replace("_", " "), file=sys.stderr)
        figure(studies, report)
    report.write_claims()


if __name__ == "__main__":
    main()
