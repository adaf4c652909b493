#!/usr/bin/env python3
"""Regenerates mLoRA's figures: `scripts/reproduce.sh mlora` runs it."""

import sys
from pathlib import Path

from mlora_batching import figure_16
from mlora_completion import figure_7
from mlora_launches import figure_14
from mlora_memory import figure_8a
from mlora_pipeline import figure_9, figure_10
from mlora_varied import vary
from planning import Planner
from report import Report


def main() -> None:
    planner = Planner(Path(sys.argv[1]))
    report = Report(Path(sys.argv[2]), "scripts/reproduce.sh mlora")
    for figure in (figure_7, figure_8a, figure_9, figure_10, figure_14, figure_16):  # figure 11 is of figure 7's plans
        print(f"{figure.__name__.replace('_', ' ')}", file=sys.stderr)
        figure(planner, report)
    report.write_claims()
    vary(planner, report)


if __name__ == "__main__":
    main()
