"""Regenerates figures, by name: see --help and --list."""

import argparse
import importlib
import sys
import tempfile
from pathlib import Path

from . import pictures
from .braid import ROOT, Braid
from .report import Report

PAPERS = ["muxtune", "lobra", "lorafusion", "mlora", "cluster"]
EPILOG = """A NAME is that of a paper, or of one of its figures, such as muxtune.fig14. Of a paper, results/PAPER gets a
table of each figure, a picture where matplotlib is installed, and claims.csv; of a figure alone its own, and its rows
of claims.csv. The commands in the tables run in FOLDER, where their inputs are written. BRAID names another program
than the release build's, BRAID_TRACES the folder of public traces (scripts/fetch_traces.sh), without which `cluster`
has the generated one alone."""


def figures_of(paper: str) -> list[str]:
    return importlib.import_module(f"reproduce.{paper}").FIGURES


def module_of(paper: str, figure: str):
    return importlib.import_module(f"reproduce.{paper}.{figure}")


def chosen(names: list[str]) -> dict[str, list[str]]:
    """The figures to make, by paper, in the order of the papers' own lists."""
    figures: dict[str, list[str]] = {}
    for name in names:
        paper, _, figure = name.partition(".")
        if paper not in PAPERS or (figure and figure not in figures_of(paper)):
            raise SystemExit(f"error: unknown name '{name}'; --list tells the names")
        asked = figures.setdefault(paper, [])
        asked += [figure] if figure else figures_of(paper)
    return {paper: [one for one in figures_of(paper) if one in asked] for paper, asked in figures.items()}


def list_figures() -> None:
    for paper in PAPERS:
        for figure in figures_of(paper):
            print(f"{f'{paper}.{figure}':22} {module_of(paper, figure).__doc__.strip().splitlines()[0]}")


def main() -> None:
    parser = argparse.ArgumentParser(
        "scripts/reproduce.sh", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(PAPERS)}, or a figure of one")
    parser.add_argument("--list", action="store_true", help="print the names of all figures")
    parser.add_argument("--folder", type=Path, help="where inputs are written; left out: a temporary one")
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="folder with a folder a paper")
    words = parser.parse_args()
    if words.list:
        list_figures()
        return
    if not words.names:
        parser.error("give a NAME, or --list")
    figures = chosen(words.names)
    if pictures.pyplot is None:
        print("no pictures: matplotlib is missing; install python3-matplotlib", file=sys.stderr)
    with tempfile.TemporaryDirectory() as temporary:
        for paper, asked in figures.items():
            report = Report(words.results / paper, f"scripts/reproduce.sh {paper}")
            braid = Braid((words.folder or Path(temporary)) / paper)
            for figure in asked:
                print(f"{paper}.{figure}", file=sys.stderr)
                module_of(paper, figure).make(braid, report)
            report.write_claims(others_stay=asked != figures_of(paper))


if __name__ == "__main__":
    main()
