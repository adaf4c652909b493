"""Traces that studies are of: public ones, looked for where BRAID_TRACES says, what is derived from them, generated."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from .. import Braid

GENERATED_JOBS = 2000


@dataclass(frozen=True)
class Trace:
    """`file` as the commands in the tables name it."""

    name: str
    file: str


def public(braid: Braid, name: str, file: str) -> Trace | None:
    """None where it is not here."""
    folder = os.environ.get("BRAID_TRACES")
    if not folder or not (Path(folder) / file).exists():
        print(f"  without {name}: no {file}; see scripts/fetch_traces.sh", file=sys.stderr)
        return None
    link = braid.folder / file
    if not link.exists():
        link.symlink_to((Path(folder) / file).resolve())
    return Trace(name, file)


def generated(braid: Braid) -> Trace:
    return _made(braid, "generated", "generate", "--jobs", str(GENERATED_JOBS), "--seed", "1")


def philly_virtual_cluster(braid: Braid, name: str) -> Trace | None:
    """From October on."""
    return _of_philly(braid, f"philly-{name}", "--vc", name, "--from", "2017-10-01")


def philly_month(braid: Braid, first: str, end: str) -> Trace | None:
    return _of_philly(braid, f"philly-{first[:7]}", "--from", first, "--to", end)


def four_kinds(braid: Braid) -> list[Trace]:
    """Generated; Philly's week; its virtual cluster with the most GPU-seconds; ITP: those that are here."""
    traces = [generated(braid), public(braid, "week", "philly_resampled_week.csv")]
    traces += [philly_virtual_cluster(braid, "ee9e8c"), public(braid, "itp-02", "itp_cluster02.csv")]
    return [trace for trace in traces if trace]


def _of_philly(braid: Braid, name: str, *words: str) -> Trace | None:
    philly = public(braid, name, "philly.csv")
    return _made(braid, name, "slice", philly.file, *words) if philly else None


def _made(braid: Braid, name: str, *words: str) -> Trace:
    trace = Trace(name, f"{name}.csv")
    if not (braid.folder / trace.file).exists():
        braid.run("trace", *words, "--out", trace.file)
    return trace
