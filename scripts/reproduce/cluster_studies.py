"""Studies that `braid cluster` runs, and the traces that they are of."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Trace:
    """`file` as the commands in the tables name it; none where it is not here."""

    name: str
    file: str | None


class Studies:
    """Traces are looked for where BRAID_TRACES says; what is derived from them lies in `folder`."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.braid = os.environ["BRAID"]
        self.traces = Path(os.environ.get("BRAID_TRACES", ""))

    def public(self, name: str, file: str) -> Trace:
        """A trace of the public ones; scripts/fetch_traces.sh says where they are."""
        where = self.traces / file
        if os.environ.get("BRAID_TRACES") and where.exists():
            link = self.folder / file
            if not link.exists():
                link.symlink_to(where.resolve())
            return Trace(name, file)
        print(f"  without {name}: no {file}; see scripts/fetch_traces.sh", file=sys.stderr)
        return Trace(name, None)

    def generated(self, jobs: int) -> Trace:
        self.make("trace", "generate", "--jobs", str(jobs), "--seed", "1", "--out", "generated.csv")
        return Trace("generated", "generated.csv")

    def philly_vc(self, name: str) -> Trace:
        """A virtual cluster of Philly, from October on."""
        return self._of_philly(f"philly-{name}", "--vc", name, "--from", "2017-10-01")

    def philly_month(self, first: str, end: str) -> Trace:
        """All of Philly for a while."""
        return self._of_philly(f"philly-{first[:7]}", "--from", first, "--to", end)

    def _of_philly(self, name: str, *words: str) -> Trace:
        philly = self.public(name, "philly.csv")
        if not philly.file:
            return philly
        self.make("trace", "slice", philly.file, *words, "--out", f"{name}.csv")
        return Trace(name, f"{name}.csv")

    def jobs(self, trace: Trace) -> int:
        command = [self.braid, "trace", "stats", trace.file, "--json"]
        told = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if told.returncode != 0:
            raise SystemExit(told.stderr.strip())
        return json.loads(told.stdout)["jobs"]

    def run(self, *words: str) -> tuple[dict, str]:
        """summary.json of a study, and its command."""
        command = ["cluster", *words]
        done = subprocess.run(
            [self.braid, *command, "--json", "--quiet"], cwd=self.folder, capture_output=True, text=True, check=False
        )
        # 1: estimates were too far off; that is told in the table.
        if done.returncode not in (0, 1) or not done.stdout:
            raise SystemExit(f"braid {' '.join(command)}: {done.stderr.strip()}")
        return json.loads(done.stdout), "braid " + " ".join(command)

    def make(self, *words: str) -> None:
        """A file that --out names, once."""
        if not (self.folder / words[-1]).exists():
            subprocess.run([self.braid, *words], cwd=self.folder, check=True, capture_output=True)


def mean(group: dict, metric: str) -> float | None:
    found = group["metrics"].get(metric)
    return found["mean"] if found else None


def half_width(group: dict, metric: str) -> float | None:
    return group["metrics"].get(metric, {}).get("ci95")
