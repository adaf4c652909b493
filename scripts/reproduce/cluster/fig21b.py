"""Figure 21(b): throughput of 128 GPUs under a week of Philly, first come first served."""

from .. import Braid, Figure, Panel, Report, Series
from .study import EXCLUSIVE, MUXTUNE, SEEDS, SL_PEFT, ask, completion_hours, groups_of, half_width, mean, worst_error
from .traces import Trace, public

POLICIES = {"HF-PEFT": "hf-peft:recompute=none", "NeMo": EXCLUSIVE, "SL-PEFT": SL_PEFT, "MuxTune": MUXTUNE}
CASES = {"SST2": "sst2", "QA": "qa", "RTE": "rte", "non-uniform": "sst2,qa,rte"}
# MuxTune over each.
UNIFORM = {"HF-PEFT": 1.61, "NeMo": 1.51, "SL-PEFT": 1.36}
NON_UNIFORM = {"SL-PEFT": 1.58}
METRIC = "saturated_tokens_per_second"
COLUMNS = ["trace", "case", "policy", METRIC, "ci95", "muxtune_over_it", "completion_mean_hours", "tokens_per_second"]
COLUMNS += ["offered_load", "estimate_error_p99", "command"]


def rows_of(braid: Braid, trace: Trace | None) -> dict[tuple[str, str], list]:
    """By case and policy; without a trace, the generated one that `braid cluster` makes."""
    rows = {}
    for case, datasets in CASES.items():
        words = ["--trace", trace.file] if trace else []
        words += ["--gpus", "128", "--datasets", datasets, "--seeds", str(SEEDS)]
        summary, command = ask(braid, *words, "--policy", ",".join(POLICIES.values()))
        ours = mean(summary["groups"][list(POLICIES).index("MuxTune")], METRIC)
        for name, (group, runs) in zip(POLICIES, groups_of(summary)):
            theirs = mean(group, METRIC)
            row = [trace.name if trace else "generated", case, name, theirs, half_width(group, METRIC), ours / theirs]
            row += [completion_hours(group), mean(group, "tokens_per_second"), runs[0]["offered_load"]]
            rows[case, name] = [*row, worst_error(runs), command]
    return rows


def claim(figure: Figure, rows: dict[tuple[str, str], list]) -> None:
    def over(kind: str, case: str, name: str, paper: float) -> None:
        row = rows[case, name]
        figure.claim(f"{kind}: MuxTune over {name}", paper, row[COLUMNS.index("muxtune_over_it")], row[-1])

    for name, paper in UNIFORM.items():
        for case in list(CASES)[:3]:
            over(f"uniform {case}", case, name, paper)
    for name, paper in NON_UNIFORM.items():
        over("non-uniform", "non-uniform", name, paper)


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("21b")
    week = public(braid, "Philly-derived, resampled", "philly_resampled_week.csv")
    found = [rows_of(braid, trace) for trace in ([week, None] if week else [None])]
    first = found[0]
    claim(figure, first)
    figure.table(COLUMNS, [row for rows in found for row in rows.values()])
    values = COLUMNS.index(METRIC)
    series = [Series(name, [first[case, name][values] for case in CASES]) for name in POLICIES]
    title = f"21(b): 128 A40s, a week of Philly ({next(iter(first.values()))[0]}), FCFS, LLaMA7B"
    figure.picture(title, [Panel("saturated throughput", "billed tokens/s", list(CASES), series)])
