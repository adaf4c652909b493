"""MuxTune's figure 21(a) in the simulator: n tasks on n GPUs, on one instance that grows, or on several."""

from cluster_studies import Studies, mean
from report import Panel, Report, Series

GPUS = [4, 8, 16, 32]
NODE = 4
# A way, its policy, and what it asks `braid cluster` for on so many GPUs. Exclusive tasks take turns on an instance.
WAYS = {
    "NeMo, up only": ("nemo:schedule=1f1b", lambda gpus: ["--instance-gpus", str(gpus)]),
    "NeMo, up then out": ("nemo:schedule=1f1b", lambda gpus: ["--instance-gpus", str(NODE)]),
    "SL-PEFT, up only": ("sl-peft", lambda gpus: ["--scaling", "up"]),
    "SL-PEFT, up then out": ("sl-peft", lambda gpus: ["--scaling", "up-then-out"]),
    "MuxTune, up only": ("muxtune", lambda gpus: ["--scaling", "up"]),
    "MuxTune, up then out": ("muxtune", lambda gpus: ["--scaling", "up-then-out"]),
}
HOURS = 10


def figure_21a(studies: Studies, report: Report) -> None:
    rows, found = [], {}
    for gpus in GPUS:
        trace = f"{gpus}-at-once.csv"
        lines = ["job_id,submit_s,duration_s,gpus"] + [f"{job},0,{3600 * HOURS},{NODE}" for job in range(gpus)]
        (studies.folder / trace).write_text("\n".join(lines) + "\n")
        for way, (policy, words) in WAYS.items():
            summary, command = studies.run(
                *("--trace", trace, "--gpus", str(gpus), "--datasets", "qa", "--batch-sizes", "128"),
                *("--job-gpus", str(NODE), "--policy", policy, *words(gpus)),
            )
            group = summary["groups"][0]
            found[way, gpus] = mean(group, "tokens_per_second")
            rows.append([gpus, way, found[way, gpus], mean(group, "instances"), mean(group, "resizes"), command])
    report.table("figure21a", ["gpus", "way", "tokens_per_second", "instances", "resizes", "command"], rows)
    over = {gpus: found["MuxTune, up only", gpus] / found["NeMo, up only", gpus] for gpus in GPUS}
    best = max(over, key=over.get)
    report.claim("21a", f"up only: MuxTune over NeMo ({best} GPUs)", 1.61, over[best], _command(rows, best, "up only"))
    over = {gpus: found["MuxTune, up then out", gpus] / found["NeMo, up then out", gpus] for gpus in GPUS}
    best = max(over, key=over.get)
    report.claim(
        "21a", f"up then out: MuxTune over NeMo ({best} GPUs)", 1.28, over[best], _command(rows, best, "up then out")
    )
    series = [Series(way, [found[way, gpus] for gpus in GPUS]) for way in WAYS]
    title = "21(a): n tasks on n A40s, LLaMA7B, QA, batch 128"
    report.picture("figure21a", "21a", title, [Panel("n tasks at once", "billed tokens/s", GPUS, series, lines=True)])


def _command(rows: list, gpus: int, how: str) -> str:
    return next(row[-1] for row in rows if row[0] == gpus and row[1] == f"MuxTune, {how}")
