#!/usr/bin/env python3
"""The study of schedulers and ways to share, on a trace of one's own: `scripts/study_trace.sh` runs it."""

import sys
from pathlib import Path

from cluster_schedulers import study
from cluster_studies import Studies, Trace
from report import Report


def main() -> None:
    folder, file, results, gpus = sys.argv[1:]
    own = Path(file).resolve()
    studies, trace = Studies(Path(folder)), Trace(own.stem, str(own))
    studies.jobs(trace)  # it can be read
    report = Report(Path(results), "scripts/study_trace.sh")
    study(studies, report, [trace], int(gpus), priorities=[])  # its own, where it has any


if __name__ == "__main__":
    main()
