"""MuxTune figure 9(b), what batching gains on one GPU; section 3.4.1, what the pipeline template's rules do; and the
items of memory of section 2.2."""

import shlex
from pathlib import Path

from muxtune_settings import MICROBATCH_SAMPLES, MUXTUNE, NEMO, QA, SL_PEFT, workload
from planning import PAPERS_COMMAND, Planner, ratio
from report import Panel, Report, Series

# The shape of Llama-2-7B with 8 of its 32 layers, as the figure's caption says.
EIGHT_LAYERS = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 8,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
}
TIMES = [1, 2, 4, 8]
TEMPLATE = "template.txt"
STAGES = [2, 4, 8]


def figure_9b(planner: Planner, report: Report) -> None:
    """A microbatch of 8 sequences of 128 tokens, and so many times as much: of one task, and of as many tasks."""
    backbone = planner.backbone("llama2-7b-8-layers", EIGHT_LAYERS)
    cluster = planner.cluster("a40", 1, 1, "", "")
    flags = {"tp": 1, "pp": 1, "microbatches": 1}
    one = {
        times: planner.compare_one(
            workload(planner, backbone, [QA], 1, MICROBATCH_SAMPLES * times), cluster, NEMO, **flags
        )
        for times in TIMES
    }
    several = {
        times: planner.compare(
            workload(planner, backbone, [QA], times, MICROBATCH_SAMPLES),
            cluster,
            [SL_PEFT, f"{MUXTUNE}:fusion=literal"],
            **flags,
        )
        for times in TIMES
    }
    series = {
        "one task, its batch grown": one,
        "as many tasks, SL-PEFT": {times: plans[0] for times, plans in several.items()},
        "as many tasks, MuxTune": {times: plans[1] for times, plans in several.items()},
    }
    alone, most = one[TIMES[0]], TIMES[-1]
    for name, plans in series.items():
        plan = plans[most]
        report.claim(
            "9b",
            f"8 x 128 tokens {most} times, {name}: throughput",
            1.12,
            ratio(plan.effective, alone.effective),
            f"{plan.command}; {alone.command}",
        )
    report.plans(
        "figure9b",
        ["batched", "times"],
        [([name, times], plan) for name, plans in series.items() for times, plan in plans.items()],
    )
    report.picture(
        "figure9b",
        "9b",
        "MuxTune figure 9(b): batching on one A40 (thin: at the proven lower bound; cross: the paper)",
        [
            Panel(
                "llama2-7b, 8 layers, times 8 x 128 tokens",
                "throughput over once",
                TIMES,
                [
                    Series(
                        name,
                        [ratio(plan.effective, alone.effective) for plan in plans.values()],
                        [ratio(plan.effective_bound, alone.effective) for plan in plans.values()],
                        [1.12 if times == most else None for times in TIMES] if plans is one else None,
                    )
                    for name, plans in series.items()
                ],
                lines=True,
            )
        ],
    )


def rules_without(file: Path) -> dict[tuple[int, str], list[float]]:
    """The first table of template.txt: by stages and memory the makespans without each rule and without 1 to 3."""
    lines = file.read_text().splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith("stages")) + 1
    table = {}
    for line in lines[first:]:
        if not line:
            break
        stages, memory, *values = line.split()
        table[int(stages), memory] = [float(value) for value in values]
    return table


def section_3_4_1(_: Planner, report: Report) -> None:
    rules = rules_without(report.folder / TEMPLATE)
    command = "build/release/template_study"
    for stages in STAGES:
        ours = rules[stages, "any"][4]
        report.claim("3.4.1", f"{stages} stages: time without rules 1 to 3, over with all", 1.17, ours, command)
    names = ["descending", "consecutive", "eager", "backward first", "none of 1 to 3"]
    bounds = {stages: 1 / rules[stages, "any"][5] for stages in STAGES}
    report.table(
        "section3.4.1",
        ["stages", "memory", "without", "makespan_over_all", "lower_bound_over_all", "command"],
        [
            [stages, memory, name, value, 1 / values[5], command]
            for (stages, memory), values in rules.items()
            for name, value in zip(names, values)
        ],
    )
    report.picture(
        "section3.4.1",
        "3.4.1",
        "MuxTune section 3.4.1: the template's rules (thin: the busiest stage's work; cross: the paper)",
        [
            Panel(
                "random pipelines, all memory",
                "makespan, over all rules",
                names,
                [
                    Series(
                        f"{stages} stages",
                        [rules[stages, "any"][column] for column in range(len(names))],
                        [bounds[stages]] * len(names),
                        [None] * 4 + [1.17] if stages == STAGES[1] else None,
                    )
                    for stages in STAGES
                ],
            )
        ],
    )


def memory_items(planner: Planner, report: Report) -> None:
    """Figure 17(b) breaks these down, section 2.2 tells them."""
    for fact in planner.papers()["facts"]:
        if fact["source"] == "MuxTune 2.2":
            report.claim("17", f"{fact['what']}, GB", fact["paper"], fact["ours"], shlex.join(PAPERS_COMMAND))
        if fact["source"].startswith("MuxTune fig. 17"):
            report.claim("17", f"{fact['what']}: tasks", fact["paper"], fact["ours"], shlex.join(PAPERS_COMMAND))
