"""Pictures of figures: panels of bars or lines, and claims beside what was found."""

import io
import textwrap
import threading
from dataclasses import dataclass
from typing import NamedTuple

from .plan import BOUNDS, Plan

try:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
except ImportError:
    pyplot = None

# Of Okabe and Ito: told apart by those who see red and green alike.
COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7b4fa3", "#6b6b6b"]
# A system has one colour in all pictures; whatever else is shown has those that are left, in order.
SYSTEMS = ["hf-peft", "nemo", "muxtune", "sl-peft", "mlora", "lorafusion", "lobra", "exclusive"]
_DRAWING = threading.Lock()  # matplotlib draws one picture at a time
MOST_IN_A_ROW = 2
MOST_SHARED = 8  # names that stand above all panels together, and not above each
MOST_BOUNDS = 4  # lines that have theirs drawn in as well
INCHES_A_PANEL, HEIGHT = 5.2, 3.5
INCHES_A_CLAIM = 0.26
LETTERS_A_ROW = 110  # of the names above panels that share them
LETTERS_AN_INCH = 12  # of the sentence under the title
# Of units that begin or end so, more is better; of the others less.
MORE_IS_BETTER = ("tokens/s", "throughput", "over ", "speedup")


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


def draw(title: str, panels: list[Panel], claims: list[Claim], see: str = "") -> bytes | None:
    """A PNG; none without matplotlib. Under the title stands what to see in it, `see` or who is best in how many cases;
    what colours mean stands above the panels, or above each where they differ: never over what is shown."""
    if pyplot is None:
        return None
    with _DRAWING:
        return _drawn(title, panels, claims, see)


def _drawn(title: str, panels: list[Panel], claims: list[Claim], see: str) -> bytes:
    rows, columns = -(-len(panels) // MOST_IN_A_ROW), min(MOST_IN_A_ROW, len(panels))
    names = list(dict.fromkeys(one.name for panel in panels for one in panel.series))
    shared = len(names) <= MOST_SHARED
    strip = shared and len(names) > 1
    colors = dict(zip(names, colors_of(names, all(panel.lines for panel in panels))))
    in_a_row = max(1, min(6, len(names), LETTERS_A_ROW * len(names) // sum(len(name) + 8 for name in names)))
    strip_rows = -(-len(names) // in_a_row) if strip else 0
    width = INCHES_A_PANEL * max(columns, 1.6)
    told = textwrap.wrap(finding(panels, claims, see), int(LETTERS_AN_INCH * width))
    heights = [0.5 + 0.2 * len(told) + 0.25 * strip_rows, HEIGHT * rows] + ([0.8 + INCHES_A_CLAIM * len(claims)] if claims else [])
    drawing = pyplot.figure(figsize=(width, sum(heights)), layout="constrained")
    parts = drawing.subfigures(len(heights), 1, height_ratios=heights)
    parts[0].text(0.5, 1 - 0.1 / heights[0], title, fontsize=11, ha="center", va="top", weight="bold")
    parts[0].text(0.5, 1 - 0.35 / heights[0], "\n".join(told), fontsize=10, ha="center", va="top")
    axes = parts[1].subplots(rows, columns, squeeze=False).flatten()
    for axis, panel in zip(axes, panels):
        _draw_panel(axis, panel, colors, legend=not shared)
    for axis in axes[len(panels) :]:
        axis.axis("off")
    if strip:
        handles = {name: handle for axis in axes for handle, name in zip(*axis.get_legend_handles_labels())}
        parts[0].legend(handles.values(), handles, loc="lower center", ncols=in_a_row, fontsize=9, frameon=False)
    if claims:
        _draw_claims(parts[2].subplots(), claims)
    png = io.BytesIO()
    drawing.savefig(png, format="png", dpi=90, metadata={"Software": None})
    pyplot.close(drawing)
    return png.getvalue()


def system_of(name: str) -> str | None:
    return next((one for one in SYSTEMS if name.lower().startswith(one)), None)


def colors_of(names: list[str], share: bool) -> list[str]:
    """Of several series of one system all have its colour where they may `share` it, as lines of unlike styles, else
    the first."""
    taken: dict[int, str] = {}
    for index, name in enumerate(names):
        system = system_of(name)
        if system and (share or COLORS[SYSTEMS.index(system)] not in taken.values()):
            taken[index] = COLORS[SYSTEMS.index(system)]
    left = [color for color in COLORS if color not in taken.values()] or COLORS
    others = [index for index in range(len(names)) if index not in taken]
    taken.update({index: left[place % len(left)] for place, index in enumerate(others)})
    return [taken[index] for index in range(len(names))]


def finding(panels: list[Panel], claims: list[Claim], see: str = "") -> str:
    """Who is best in how many of the cases, or what is to be seen instead, and how many claims are met."""
    wins: dict[str, int] = {}
    cases = 0
    for panel in panels:
        best = max if any(word in panel.unit for word in MORE_IS_BETTER) else min
        for group in range(len(panel.groups)):
            values = {one.name: one.values[group] for one in panel.series if one.values[group] is not None}
            if len(values) < 2:
                continue
            cases += 1
            name = best(values, key=values.get)
            wins[name] = wins.get(name, 0) + 1
    told = []
    units = {panel.unit for panel in panels}
    if see:
        told.append(see)
    elif cases and len(units) == 1:
        name = max(wins, key=wins.get)
        most = "most" if any(word in panels[0].unit for word in MORE_IS_BETTER) else "least"
        told.append(f"{name} has the {most} {panels[0].unit} in {wins[name]} of {cases} cases")
    known = [claim.ours_over_paper for claim in claims if claim.ours_over_paper]
    if known:
        near = sum(1 / 1.25 <= ratio <= 1.25 for ratio in known)
        told.append(f"{near} of {len(known)} claims come out within 25 %")
    return "; ".join(told) + "." if told else ""


def _draw_panel(axis, panel: Panel, colors: dict[str, str], legend: bool) -> None:
    positions = range(len(panel.groups))
    for index, series in enumerate(panel.series):
        (_draw_line if panel.lines else _draw_bars)(axis, positions, index, len(panel.series), series, colors[series.name])
    axis.set_title(panel.title, fontsize=10, pad=8 + (12 * -(-len(panel.series) // 3) if legend and len(panel.series) > 1 else 0))
    axis.set_ylabel(panel.unit, fontsize=9)
    letters = sum(len(str(group)) + 2 for group in panel.groups)
    turned = 90 if len(panel.groups) > 12 else 25 if letters > 48 else 0
    axis.set_xticks(list(positions), panel.groups, fontsize=9, rotation=turned, ha="right" if turned == 25 else "center")
    axis.tick_params(axis="y", labelsize=9)
    axis.spines[["top", "right"]].set_visible(False)
    if panel.logarithmic:
        axis.set_yscale("log")
    else:
        axis.set_ylim(0, axis.get_ylim()[1] * 1.05)
    if legend and len(panel.series) > 1:
        axis.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False, borderaxespad=0)


def _draw_line(axis, positions, index: int, count: int, series: Series, color: str) -> None:
    earlier = sum(line.get_color() == color and line.get_marker() == "o" for line in axis.get_lines())
    style = ["-", "--", ":", "-."][(earlier if system_of(series.name) else index) % 4]
    axis.plot(positions, _plotted(series.values), style, marker="o", markersize=4, color=color, label=series.name)
    if series.bounds and count <= MOST_BOUNDS:
        axis.plot(positions, _plotted(series.bounds), linewidth=0.7, color=color)
    _draw_crosses(axis, positions, series, color)


def _draw_bars(axis, positions, index: int, count: int, series: Series, color: str) -> None:
    width = 0.8 / count
    places = [position + (index - (count - 1) / 2) * width for position in positions]
    axis.bar(places, _plotted(series.values), width * 0.92, color=color, label=series.name)
    for place, bound in zip(places, series.bounds or []):
        if bound is not None:
            axis.plot([place - width / 2, place + width / 2], [bound, bound], linewidth=1, color="black")
    _draw_crosses(axis, places, series, "black")


def _draw_crosses(axis, places, series: Series, color: str) -> None:
    if series.paper:
        axis.plot(places, _plotted(series.paper), linestyle="", marker="x", markersize=6, color=color)


def _draw_claims(axis, claims: list[Claim]) -> None:
    """Ours over the paper's, with the first claim on top; the line at 1 is the paper."""
    names = []
    for index, claim in enumerate(reversed(claims)):
        ratio = claim.ours_over_paper or 0
        axis.barh(index, ratio, 0.6, color=COLORS[0])
        beside = 1 if 0.8 < ratio < 1 else ratio  # not on the line
        axis.text(beside, index, f"  {ratio:.2f}" if ratio else "  none", fontsize=8, va="center")
        told = f"{claim.ours:.3g}" if claim.ours is not None else "none"
        names.append(f"{claim.claim}: paper {claim.paper:.3g}, ours {told}")
    axis.axvline(1, linewidth=1, color="black")
    axis.set_ylim(-0.6, len(claims) - 0.4)
    axis.set_xlim(0, max(1.6, *(1.2 * (claim.ours_over_paper or 0) for claim in claims)))
    axis.set_yticks(range(len(claims)), names, fontsize=8)
    axis.tick_params(axis="x", labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_title("ours over the paper's", fontsize=10)


def _plotted(values: list) -> list[float]:
    return [float("nan") if value is None else value for value in values]
