#!/usr/bin/env python3
"""Regenerates MuxTune's figures: `scripts/reproduce.sh muxtune` runs it."""

import sys
from pathlib import Path

from muxtune_ablation import figure_16, figure_18, figure_19
from muxtune_alignment import figure_20
from muxtune_batching import figure_9b, section_3_4_1
from muxtune_memory import figure_17
from muxtune_throughput import figure_14, figure_15, figure_21a
from muxtune_varied import vary
from planning import Planner
from report import Report


def main() -> None:
    planner = Planner(Path(sys.argv[1]))
    report = Report(Path(sys.argv[2]), "scripts/reproduce.sh muxtune")
    for figure in (
        figure_9b,
        section_3_4_1,
        figure_14,
        figure_15,
        figure_16,
        figure_17,
        figure_18,
        figure_19,
        figure_20,
        figure_21a,
    ):
        print(f"{figure.__name__.replace('_', ' ')}", file=sys.stderr)
        figure(planner, report)
    report.write_claims()
    vary(planner, report)


if __name__ == "__main__":
    main()
