"""Tables and pictures of reproduced figures."""

import csv
import sys
from dataclasses import dataclass, field
from pathlib import Path

from planning import Plan

try:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
except ImportError:
    pyplot = None

PLAN_COLUMNS = [
    "policy",
    "deployment",
    "microbatches",
    "htasks",
    "step_seconds",
    "lower_bound_seconds",
    "bound_by",
    "effective_tokens_per_second",
    "computed_tokens_per_second",
    "bubble_ratio",
    "gpu_utilization",
    "peak_gigabytes",
    "held_gigabytes",
    "error",
    "command",
]
INCHES_A_PANEL = 4.2
INCHES_A_CLAIM = 0.34
HEIGHT = 3.6


def plan_cells(plan: Plan) -> list:
    return [
        plan.policy,
        plan.deployment,
        plan.microbatches,
        plan.htasks,
        plan.step_seconds,
        plan.bound_seconds,
        plan.bound_by,
        plan.effective,
        plan.computed,
        plan.bubble_ratio,
        plan.utilization,
        plan.peak_gigabytes,
        plan.held_gigabytes,
        plan.error,
        plan.command,
    ]


@dataclass
class Series:
    """One line or kind of bar: a value for each group; None leaves a gap. `bounds` are drawn in as thin lines, what a
    paper gives in their place (`paper`) as crosses."""

    name: str
    values: list
    bounds: list | None = None
    paper: list | None = None


@dataclass
class Panel:
    title: str
    unit: str
    groups: list
    series: list[Series]
    lines: bool = False
    logarithmic: bool = False


@dataclass
class Report:
    """Collects the claims of one paper; a figure's own claims are drawn in its last panel."""

    folder: Path
    made_by: str
    claims: list = field(default_factory=list)

    def __post_init__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        if pyplot is None:
            print("no pictures: matplotlib is missing; install python3-matplotlib", file=sys.stderr)

    def claim(self, figure: str, text: str, paper: float, ours: float | None, command: str) -> None:
        self.claims.append((figure, text, paper, ours, ours / paper if ours is not None else None, command))

    def table(self, name: str, columns: list[str], rows: list[list]) -> None:
        file = self.folder / f"{name}.csv"
        unfinished = file.with_suffix(".new")
        with unfinished.open("w", newline="") as stream:
            stream.write(f"# {self.made_by}\n")
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows([_cell(value) for value in row] for row in rows)
        unfinished.replace(file)

    def plans(self, name: str, columns: list[str], rows: list[tuple[list, Plan]]) -> None:
        self.table(name, columns + PLAN_COLUMNS, [settings + plan_cells(plan) for settings, plan in rows])

    def write_claims(self) -> None:
        self.table("claims", ["figure", "claim", "paper", "ours", "ours_over_paper", "command"], self.claims)

    def picture(self, name: str, figure: str, title: str, panels: list[Panel]) -> None:
        """The panels, and after them the claims of `figure`, the paper's beside ours."""
        if pyplot is None:
            return
        claims = [row for row in self.claims if row[0] == figure]
        count = len(panels) + (1 if claims else 0)
        height = max(HEIGHT, 1 + INCHES_A_CLAIM * len(claims))
        drawing, axes = pyplot.subplots(1, count, figsize=(INCHES_A_PANEL * count, height), squeeze=False)
        for axis, panel in zip(axes[0], panels):
            _draw(axis, panel)
        if claims:
            _draw_claims(axes[0][-1], claims)
        drawing.suptitle(title, fontsize=10)
        drawing.tight_layout()
        unfinished = self.folder / f"{name}.new"
        drawing.savefig(unfinished, format="png", dpi=90, metadata={"Software": None})
        unfinished.replace(self.folder / f"{name}.png")
        pyplot.close(drawing)


def _cell(value):
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else value


def _plotted(values: list) -> list[float]:
    return [float("nan") if value is None else value for value in values]


def _draw_paper(axis, places, series: Series, color: str) -> None:
    if series.paper:
        axis.plot(places, _plotted(series.paper), linestyle="", marker="x", markersize=5, color=color)


def _rotation(groups: list) -> int:
    return 90 if len(groups) > 12 else 30 if len(groups) > 4 else 0


def _draw(axis, panel: Panel) -> None:
    positions = range(len(panel.groups))
    width = 0.8 / len(panel.series)
    for index, series in enumerate(panel.series):
        color = f"C{index}"
        if panel.lines:
            axis.plot(positions, _plotted(series.values), marker="o", markersize=3, color=color, label=series.name)
            if series.bounds:
                axis.plot(positions, _plotted(series.bounds), linewidth=0.6, color=color)
            _draw_paper(axis, positions, series, color)
            continue
        places = [position + (index - (len(panel.series) - 1) / 2) * width for position in positions]
        axis.bar(places, _plotted(series.values), width * 0.92, color=color, label=series.name)
        for place, bound in zip(places, series.bounds or []):
            if bound is not None:
                axis.plot([place - width / 2, place + width / 2], [bound, bound], linewidth=0.8, color="black")
        _draw_paper(axis, places, series, "black")
    axis.set_title(panel.title, fontsize=8)
    axis.set_ylabel(panel.unit, fontsize=8)
    axis.set_xticks(list(positions), panel.groups, fontsize=7, rotation=_rotation(panel.groups))
    axis.tick_params(axis="y", labelsize=7)
    if panel.logarithmic:
        axis.set_yscale("log")
    else:
        axis.set_ylim(0, axis.get_ylim()[1] * 1.15)
    axis.legend(fontsize=6, framealpha=0.6)


def _draw_claims(axis, claims: list) -> None:
    """Ours over the paper's, with the first claim on top; the line at 1 is the paper."""
    for index, (_, text, paper, ours, over, _) in enumerate(reversed(claims)):
        axis.barh(index - 0.2, over or 0, 0.4, color="C3")
        told = f"{ours:.3g}" if ours is not None else "none"
        axis.text(0, index + 0.05, f"{text}: paper {paper:.3g}, ours {told}", fontsize=6, va="bottom")
    axis.axvline(1, linewidth=0.8, color="black")
    axis.set_ylim(-0.6, len(claims) - 0.3)
    axis.set_xlim(0, max(1.6, *(1.1 * (over or 0) for _, _, _, _, over, _ in claims)))
    axis.set_yticks([])
    axis.tick_params(axis="x", labelsize=7)
    axis.set_title("ours / paper", fontsize=8)
