"""MuxTune's figure 21(b): throughput of a cluster of 128 GPUs under a week of Philly, first come first served."""

from cluster_studies import Studies, Trace, half_width, mean
from report import Panel, Report, Series

POLICIES = {"HF-PEFT": "hf-peft", "NeMo": "nemo:schedule=1f1b", "SL-PEFT": "sl-peft", "MuxTune": "muxtune"}
CASES = {"SST2": "sst2", "QA": "qa", "RTE": "rte", "non-uniform": "sst2,qa,rte"}
UNIFORM = {"HF-PEFT": 1.61, "NeMo": 1.51, "SL-PEFT": 1.36}
NON_UNIFORM = {"SL-PEFT": 1.58}
VARIED = {
    "none": [],
    "batches of 8, 16, 32": ["--batch-sizes", "8,16,32"],
    "instances of 2 GPUs": ["--instance-gpus", "2"],
    "instances of 8 GPUs": ["--instance-gpus", "8"],
    "at most 4 tasks": ["--most-tasks", "4"],
    "at most 16 tasks": ["--most-tasks", "16"],
    "re-planning takes 10 s": ["--replan-seconds", "10"],
    "llama2-13b": ["--backbone", "llama2-13b"],
}
METRIC = "saturated_tokens_per_second"
SEEDS = 3


def figure_21b(studies: Studies, report: Report) -> None:
    generated = Trace("generated", None)
    rows = []
    for trace in (studies.public("Philly-derived, resampled", "philly_resampled_week.csv"), generated):
        if trace is not generated and trace.file is None:
            continue
        ratios = _cases(studies, trace, rows)
        if trace is generated and report.claims:
            continue
        _claims(report, ratios)
    columns = ["trace", "case", "policy", METRIC, "ci95", "muxtune_over_it", "completion_mean_hours"]
    columns += ["tokens_per_second", "offered_load", "estimate_error_p99", "command"]
    report.table("figure21b", columns, rows)
    first = [row for row in rows if row[0] == rows[0][0]]
    series = [Series(name, [_of(first, case, name) for case in CASES]) for name in POLICIES]
    title = f"21(b): 128 A40s, a week of Philly ({rows[0][0]}), FCFS, LLaMA7B"
    report.picture("figure21b", "21b", title, [Panel("saturated throughput", "billed tokens/s", list(CASES), series)])


def varied(studies: Studies, report: Report) -> None:
    """What one change at a time does to MuxTune's lead, on the generated trace over QA."""
    rows = []
    for change, words in VARIED.items():
        summary, command = studies.run("--datasets", "qa", "--policy", ",".join(POLICIES.values()), *words)
        values = [mean(group, METRIC) for group in summary["groups"]]
        rows.append([change, *values, *(values[-1] / value for value in values[:-1]), command])
    names = list(POLICIES)
    ratios = [f"MuxTune over {name}" for name in names[:-1]]
    report.table("varied", ["change", *names, *ratios, "command"], rows)


def _cases(studies: Studies, trace: Trace, rows: list) -> dict:
    """Ours over each, by case; the first seed's audit stands for all."""
    ratios = {}
    for case, datasets in CASES.items():
        words = ["--trace", trace.file] if trace.file else []
        words += ["--gpus", "128", "--datasets", datasets, "--seeds", str(SEEDS)]
        summary, command = studies.run(*words, "--policy", ",".join(POLICIES.values()))
        groups = dict(zip(POLICIES, summary["groups"]))
        ours = mean(groups["MuxTune"], METRIC)
        for index, (name, group) in enumerate(groups.items()):
            runs = summary["runs"][index * SEEDS : (index + 1) * SEEDS]
            ratio = ours / mean(group, METRIC)
            ratios[case, name] = ratio, command
            rows.append(
                [trace.name, case, name, mean(group, METRIC), half_width(group, METRIC), ratio]
                + [mean(group, "completion_mean_seconds") / 3600, mean(group, "tokens_per_second")]
                + [runs[0]["offered_load"], max(run["estimates"]["error_p99"] for run in runs), command]
            )
    return ratios


def _claims(report: Report, ratios: dict) -> None:
    for name, paper in UNIFORM.items():
        for case in list(CASES)[:3]:
            ours, command = ratios[case, name]
            report.claim("21b", f"uniform {case}: MuxTune over {name}", paper, ours, command)
    for name, paper in NON_UNIFORM.items():
        ours, command = ratios["non-uniform", name]
        report.claim("21b", f"non-uniform: MuxTune over {name}", paper, ours, command)


def _of(rows: list, case: str, policy: str) -> float:
    return next(row[3] for row in rows if row[1] == case and row[2] == policy)
