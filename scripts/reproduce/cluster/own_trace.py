"""The study of schedulers and ways to share, on a trace of one's own: `scripts/study_trace.sh` runs it."""

import sys
import tempfile
from pathlib import Path

from .. import Braid, Report
from .schedulers import study
from .traces import Trace


def main() -> None:
    file, results, gpus = sys.argv[1:]
    own = Path(file).resolve()
    with tempfile.TemporaryDirectory() as folder:
        braid, trace = Braid(Path(folder)), Trace(own.stem, str(own))
        braid.ask("trace", "stats", trace.file)  # it can be read
        report = Report(Path(results), "scripts/study_trace.sh")
        study(braid, report, [trace], int(gpus), priorities=[])  # its own, where it has any


if __name__ == "__main__":
    main()
