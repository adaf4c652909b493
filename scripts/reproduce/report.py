"""Tables, and what papers claim beside what was found."""

import csv
from pathlib import Path

from .pictures import Claim, Panel, draw
from .plan import COLUMNS, Plan

CLAIM_COLUMNS = ["figure", *Claim._fields]


class Report:
    """The folder of one paper's results, and the claims of the figures that are made with it."""

    def __init__(self, folder: Path, made_by: str):
        self.folder, self.made_by = folder, made_by
        self.claims: dict[str, list[Claim]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def figure(self, number: str, name: str = "") -> "Figure":
        """`number`: the paper's; `name`: of its files."""
        return Figure(self, number, name or f"figure{number}")

    def text(self, name: str, content: str) -> None:
        self.replace(name, lambda file: file.write_text(content))

    def table(self, name: str, columns: list[str], rows: list) -> None:
        def write(file: Path) -> None:
            with file.open("w", newline="") as stream:
                stream.write(f"# {self.made_by}\n")
                writer = csv.writer(stream, lineterminator="\n")
                writer.writerow(columns)
                writer.writerows([_cell(value) for value in row] for row in rows)

        self.replace(f"{name}.csv", write)

    def write_claims(self, claims: dict[str, list[Claim]], others_stay: bool) -> None:
        """By figure; those of figures that were not made stay as they are in the file, or go."""
        by_figure: dict[str, list] = {}
        file = self.folder / "claims.csv"
        if others_stay and file.exists():
            with file.open(newline="") as stream:
                for row in list(csv.reader(stream))[2:]:
                    by_figure.setdefault(row[0], []).append(row)
        for number, made in claims.items():
            by_figure[number] = [[number, *claim] for claim in made]
        if by_figure:
            self.table("claims", CLAIM_COLUMNS, [row for rows in by_figure.values() for row in rows])

    def replace(self, name: str, write) -> None:
        """A file appears when it is whole."""
        unfinished = self.folder / f"{name}.new"
        write(unfinished)
        unfinished.replace(self.folder / name)


class Figure:
    """One figure's table, picture and claims."""

    def __init__(self, report: Report, number: str, name: str):
        self.report, self.number, self.name = report, number, name

    def claim(self, text: str, paper: float, ours: float | None, command: str) -> None:
        claim = Claim(text, paper, ours, ours / paper if ours is not None else None, command)
        self.report.claims.setdefault(self.number, []).append(claim)

    def table(self, columns: list[str], rows: list) -> None:
        self.report.table(self.name, columns, rows)

    def plans(self, columns: list[str], rows: list[tuple[list, Plan]]) -> None:
        """Plans under the settings that `columns` name."""
        cells = [[*settings, *(getattr(plan, field) for field in COLUMNS.values())] for settings, plan in rows]
        self.table([*columns, *COLUMNS], cells)

    def picture(self, title: str, panels: list[Panel], name: str = "", see: str = "") -> None:
        """The panels, and after them the figure's claims so far; `see`: what to see in it."""
        drawing = draw(title, panels, self.report.claims.get(self.number, []), see)
        if drawing:
            self.report.replace(f"{name or self.name}.png", lambda file: file.write_bytes(drawing))


def _cell(value):
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else value
