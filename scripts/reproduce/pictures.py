"""Pictures of figures: panels of bars or lines, and claims beside what was found."""

import io
from dataclasses import dataclass
from typing import NamedTuple

from .plan import BOUNDS, Plan

try:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
except ImportError:
    pyplot = None

INCHES_A_PANEL = 4.2
INCHES_A_CLAIM = 0.34
HEIGHT = 3.6


class Claim(NamedTuple):
    claim: str
    paper: float
    ours: float | None
    ours_over_paper: float | None
    command: str


@dataclass
class Series:
    """One line or kind of bar: a value for each group; None leaves a gap. `bounds` are drawn in as thin lines, what a
    paper gives in their place (`paper`) as crosses."""

    name: str
    values: list
    bounds: list | None = None
    paper: list | None = None


def series_of(name: str, plans: list[Plan], measure: str = "effective", paper: list | None = None) -> Series:
    """A measure of plans, and its proven bounds."""
    values, bounds = ([getattr(plan, field) for plan in plans] for field in (measure, BOUNDS[measure]))
    return Series(name, values, bounds, paper)


@dataclass
class Panel:
    title: str
    unit: str
    groups: list
    series: list[Series]
    lines: bool = False
    logarithmic: bool = False


def draw(title: str, panels: list[Panel], claims: list[Claim]) -> bytes | None:
    """A PNG; none without matplotlib."""
    if pyplot is None:
        return None
    count = len(panels) + (1 if claims else 0)
    height = max(HEIGHT, 1 + INCHES_A_CLAIM * len(claims))
    drawing, axes = pyplot.subplots(1, count, figsize=(INCHES_A_PANEL * count, height), squeeze=False)
    for axis, panel in zip(axes[0], panels):
        _draw_panel(axis, panel)
    if claims:
        _draw_claims(axes[0][-1], claims)
    drawing.suptitle(title, fontsize=10)
    drawing.tight_layout()
    png = io.BytesIO()
    drawing.savefig(png, format="png", dpi=90, metadata={"Software": None})
    pyplot.close(drawing)
    return png.getvalue()


def _draw_panel(axis, panel: Panel) -> None:
    positions = range(len(panel.groups))
    for index, series in enumerate(panel.series):
        (_draw_line if panel.lines else _draw_bars)(axis, positions, index, len(panel.series), series)
    axis.set_title(panel.title, fontsize=8)
    axis.set_ylabel(panel.unit, fontsize=8)
    turned = 90 if len(panel.groups) > 12 else 30 if len(panel.groups) > 4 else 0
    axis.set_xticks(list(positions), panel.groups, fontsize=7, rotation=turned)
    axis.tick_params(axis="y", labelsize=7)
    if panel.logarithmic:
        axis.set_yscale("log")
    else:
        axis.set_ylim(0, axis.get_ylim()[1] * 1.15)
    axis.legend(fontsize=6, framealpha=0.6)


def _draw_line(axis, positions, index: int, _count: int, series: Series) -> None:
    color = f"C{index}"
    axis.plot(positions, _plotted(series.values), marker="o", markersize=3, color=color, label=series.name)
    if series.bounds:
        axis.plot(positions, _plotted(series.bounds), linewidth=0.6, color=color)
    _draw_crosses(axis, positions, series, color)


def _draw_bars(axis, positions, index: int, count: int, series: Series) -> None:
    width = 0.8 / count
    places = [position + (index - (count - 1) / 2) * width for position in positions]
    axis.bar(places, _plotted(series.values), width * 0.92, color=f"C{index}", label=series.name)
    for place, bound in zip(places, series.bounds or []):
        if bound is not None:
            axis.plot([place - width / 2, place + width / 2], [bound, bound], linewidth=0.8, color="black")
    _draw_crosses(axis, places, series, "black")


def _draw_crosses(axis, places, series: Series, color: str) -> None:
    if series.paper:
        axis.plot(places, _plotted(series.paper), linestyle="", marker="x", markersize=5, color=color)


def _draw_claims(axis, claims: list[Claim]) -> None:
    """Ours over the paper's, with the first claim on top; the line at 1 is the paper."""
    for index, claim in enumerate(reversed(claims)):
        axis.barh(index - 0.2, claim.ours_over_paper or 0, 0.4, color="C3")
        told = f"{claim.ours:.3g}" if claim.ours is not None else "none"
        axis.text(0, index + 0.05, f"{claim.claim}: paper {claim.paper:.3g}, ours {told}", fontsize=6, va="bottom")
    axis.axvline(1, linewidth=0.8, color="black")
    axis.set_ylim(-0.6, len(claims) - 0.3)
    axis.set_xlim(0, max(1.6, *(1.1 * (claim.ours_over_paper or 0) for claim in claims)))
    axis.set_yticks([])
    axis.tick_params(axis="x", labelsize=7)
    axis.set_title("ours / paper", fontsize=8)


def _plotted(values: list) -> list[float]:
    return [float("nan") if value is None else value for value in values]
