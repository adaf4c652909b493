"""Regenerates figures, by name: see --help and --list."""

import argparse
import importlib
import os
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from . import check, overview, pictures
from .braid import ROOT, Braid
from .report import Report

PAPERS = ["muxtune", "lobra", "lorafusion", "mlora", "cluster"]
# Its commands use all cores by themselves, so that its figures are made one after another.
ALL_CORES = "cluster"
SLOW = ["layouts", "varied"]  # take minutes on one core
EPILOG = """A NAME is that of a paper, or of one of its figures, such as muxtune.fig14. Of a paper, results/PAPER gets a
table of each figure, a picture where matplotlib is installed, and claims.csv; of a figure alone its own, and its rows
of claims.csv. The commands in the tables run in FOLDER, where their inputs are written. BRAID names another program
than the release build's, BRAID_TRACES the folder of public traces (scripts/fetch_traces.sh), without which `cluster`
has the generated one alone."""


def figures_of(paper: str) -> list[str]:
    return importlib.import_module(f"reproduce.{paper}").FIGURES


def quick_of(paper: str) -> list[str]:
    return importlib.import_module(f"reproduce.{paper}").QUICK


def module_of(paper: str, figure: str):
    return importlib.import_module(f"reproduce.{paper}.{figure}")


def chosen(names: list[str]) -> dict[str, list[str]]:
    """The figures to make, by paper, in the order of the papers' own lists."""
    figures: dict[str, list[str]] = {}
    for name in names:
        if name == "all":
            return {paper: figures_of(paper) for paper in PAPERS}
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


def make_figures(figures: dict[str, list[str]], results: Path, folder: Path) -> None:
    """Several figures at a time, those that take long first. What is written does not depend on which come first."""

    def make(paper: str, name: str, braid: Braid) -> Report:
        report = Report(results / paper, f"scripts/reproduce.sh {paper}")
        sys.stderr.write(f"{paper}.{name}\n")  # whole, whoever else writes
        module_of(paper, name).make(braid, report)
        return report

    def one_after_another(paper: str, names: list[str], braid: Braid) -> list[Report]:
        return [make(paper, name, braid) for name in names]

    with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
        made: dict[str, dict[str, Future]] = {paper: {} for paper in figures}
        braids = {paper: Braid(folder / paper) for paper in figures}
        if ALL_CORES in figures:
            in_turn = pool.submit(one_after_another, ALL_CORES, figures[ALL_CORES], braids[ALL_CORES])
        asked = [(paper, name) for paper, names in figures.items() if paper != ALL_CORES for name in names]
        for paper, name in sorted(asked, key=lambda one: one[1] not in SLOW):
            made[paper][name] = pool.submit(make, paper, name, braids[paper])
        for paper, names in figures.items():
            reports = in_turn.result() if paper == ALL_CORES else [made[paper][name].result() for name in names]
            claims = {number: one for report in reports for number, one in report.claims.items()}
            reports[0].write_claims(claims, others_stay=names != figures_of(paper))


def fail_where_other(made: Path, committed: Path) -> None:
    found = check.differences(made, committed)
    for page in overview.stale(committed, PAPERS):
        found.append(f"{page}: its table of claims is not of claims.csv; write it with scripts/reproduce.sh --overview")
    for difference in found:
        print(difference, file=sys.stderr)
    if found:
        raise SystemExit(f"error: {len(found)} differences from {committed}")
    print("figures come out as they are committed", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(
        "scripts/reproduce.sh", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all, {', '.join(PAPERS)}, or a figure of one")
    parser.add_argument("--quick", action="store_true", help="of what is named only the figures that take seconds")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail where a figure is not the one that is committed"
    )
    parser.add_argument("--overview", action="store_true", help="write the table of all claims in RESULTS/README.md")
    parser.add_argument("--list", action="store_true", help="print the names of all figures")
    parser.add_argument("--folder", type=Path, help="where inputs are written; left out: a temporary one")
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="folder with a folder a paper")
    words = parser.parse_args()
    if words.list:
        list_figures()
        return
    if not words.names and not words.overview:
        parser.error("give a NAME, --list or --overview")
    figures = chosen(words.names)
    if words.quick:
        figures = {paper: [one for one in asked if one in quick_of(paper)] for paper, asked in figures.items()}
    if words.check:
        pictures.pyplot = None
    elif pictures.pyplot is None:
        print("no pictures: matplotlib is missing; install python3-matplotlib", file=sys.stderr)
    with tempfile.TemporaryDirectory() as temporary:
        results = Path(temporary) / "results" if words.check else words.results
        make_figures({paper: asked for paper, asked in figures.items() if asked}, results, words.folder or Path(temporary))
        if words.check:
            fail_where_other(results, words.results)
    if words.overview:
        overview.write(words.results, PAPERS)


if __name__ == "__main__":
    main()
