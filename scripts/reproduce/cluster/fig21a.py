"""Figure 21(a) in the simulator: n tasks on n GPUs, on one instance that grows or on several."""

from .. import Braid, Panel, Report, Series
from .study import EXCLUSIVE, HOUR, MUXTUNE, SL_PEFT, ask, mean

GPUS = [4, 8, 16, 32]
NODE = 4
HOURS = 10
POLICIES = {"NeMo": EXCLUSIVE, "SL-PEFT": SL_PEFT, "MuxTune": MUXTUNE}
SCALINGS = {"up only": ("up", 1.61), "up then out": ("up-then-out", 1.28)}  # flag; MuxTune over NeMo
WAYS = [(name, scaling) for name in POLICIES for scaling in SCALINGS]
COLUMNS = ["gpus", "way", "tokens_per_second", "instances", "resizes", "command"]


def words_of(name: str, scaling: str, gpus: int) -> list[str]:
    """Exclusive tasks take turns on an instance."""
    if POLICIES[name] == EXCLUSIVE:
        return ["--instance-gpus", str(gpus if scaling == "up only" else NODE)]
    return ["--scaling", SCALINGS[scaling][0]]


def trace_of(braid: Braid, gpus: int) -> str:
    """As many jobs as GPUs, all at once."""
    name = f"{gpus}-at-once.csv"
    lines = ["job_id,submit_s,duration_s,gpus", *(f"{job},0,{HOUR * HOURS},{NODE}" for job in range(gpus))]
    (braid.folder / name).write_text("\n".join(lines) + "\n")
    return name


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("21a")
    rows = {}
    for gpus in GPUS:
        trace = trace_of(braid, gpus)
        for name, scaling in WAYS:
            words = ["--trace", trace, "--gpus", str(gpus), "--datasets", "qa", "--batch-sizes", "128"]
            words += ["--job-gpus", str(NODE), "--policy", POLICIES[name], *words_of(name, scaling, gpus)]
            summary, command = ask(braid, *words)
            values = [mean(summary["groups"][0], metric) for metric in COLUMNS[2:5]]
            rows[name, scaling, gpus] = [gpus, f"{name}, {scaling}", *values, command]
    figure.table(COLUMNS, list(rows.values()))
    for scaling, (_, paper) in SCALINGS.items():
        over = {gpus: rows["MuxTune", scaling, gpus][2] / rows["NeMo", scaling, gpus][2] for gpus in GPUS}
        best = max(over, key=over.get)
        text = f"{scaling}: MuxTune over NeMo ({best} GPUs)"
        figure.claim(text, paper, over[best], rows["MuxTune", scaling, best][-1])
    series = [Series(", ".join(way), [rows[*way, gpus][2] for gpus in GPUS]) for way in WAYS]
    title = "21(a): n tasks on n A40s, LLaMA7B, QA, batch 128"
    figure.picture(title, [Panel("n tasks at once", "billed tokens/s", GPUS, series, lines=True)])
