"""Section 3.4.1: what the pipeline template's rules do, of template.txt's first table."""

from .. import Braid, Panel, Report, Series
from . import template

COMMAND = "build/release/template_study"
STAGES = [2, 4, 8]
RULES = ["descending", "consecutive", "eager", "backward first", "none of 1 to 3"]
GAIN = 1.17  # of rules 1 to 3


def rules_without(text: str) -> dict[tuple[int, str], list[float]]:
    """By stages and memory: the makespans without each of RULES, then what all take over the bound."""
    lines = text.splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith("stages")) + 1
    rows = [line.split() for line in lines[first : lines.index("", first)]]
    return {(int(stages), memory): [float(value) for value in values] for stages, memory, *values in rows}


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("3.4.1", "section3.4.1")
    file = report.folder / template.FILE
    if not file.exists():
        template.make(braid, report)
    found = rules_without(file.read_text())
    for stages in STAGES:
        text = f"{stages} stages: time without rules 1 to 3, over with all"
        figure.claim(text, GAIN, found[stages, "any"][4], COMMAND)
    figure.table(
        ["stages", "memory", "without", "makespan_over_all", "lower_bound_over_all", "command"],
        [
            [stages, memory, rule, value, 1 / values[5], COMMAND]
            for (stages, memory), values in found.items()
            for rule, value in zip(RULES, values)
        ],
    )
    series = []
    for stages in STAGES:
        *values, over_bound = found[stages, "any"][:6]
        paper = [None] * 4 + [GAIN] if stages == STAGES[1] else None
        series.append(Series(f"{stages} stages", values, [1 / over_bound] * len(RULES), paper))
    title = "MuxTune section 3.4.1: the template's rules (thin: the busiest stage's work; cross: the paper)"
    see = "Each rule alone is worth little; without all three a step takes 1.2 to 1.4 times as long"
    figure.picture(title, [Panel("random pipelines, all memory", "makespan, over all rules", RULES, series)], see=see)
