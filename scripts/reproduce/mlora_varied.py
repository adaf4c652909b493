"""One thing varied at a time, to show what a claim of mLoRA's that is missed depends on: results/mlora/varied.csv."""

from mlora_settings import (
    BACKBONES,
    EIGHT_3090,
    FOUR_A6000,
    HF_PEFT,
    MLORA,
    ONE_A6000_INT8,
    ONE_F_ONE_B,
    compare,
)
from planning import Plan, Planner, ratio
from report import Report

LAUNCH_MICROSECONDS = [5, 10, 20, 40]


def over(ours: Plan, baseline: Plan) -> list:
    return [ratio(ours.effective, baseline.effective), f"{ours.command}; {baseline.command}"]


def vary_launches(planner: Planner) -> list:
    """What the host takes to start a kernel, dispatch by the framework included."""
    rows = []
    for microseconds in LAUNCH_MICROSECONDS:
        profile = planner.profile(
            "a6000", "int8", f"a6000-int8-launch{microseconds}", launch_seconds=microseconds * 1e-6
        )
        for (backbone, short), tasks in zip(BACKBONES.items(), (4, 2, 1)):  # as many as fit
            peft, ours, whole = compare(
                planner, ONE_A6000_INT8, backbone, tasks, [HF_PEFT, MLORA, f"{MLORA}:pruning=off"], profile
            )
            rows.append(
                [
                    "7",
                    f"one GPU, {short}, {tasks} tasks: time saved against PEFT",
                    "launch, microseconds",
                    microseconds,
                    1 - ours.step_seconds / peft.step_seconds,
                    f"{ours.command}; {peft.command}",
                ]
            )
            if backbone == "tinyllama-1.1b":
                rows.append(
                    [
                        "16",
                        f"graph pruning, {short}, {tasks} tasks: latency saved",
                        "launch, microseconds",
                        microseconds,
                        1 - ours.step_seconds / whole.step_seconds,
                        f"{ours.command}; {whole.command}",
                    ]
                )
    return rows


def vary_tasks(planner: Planner) -> list:
    rows = []
    for tasks in (5, 6, 7, 8):
        batched, apart = compare(planner, FOUR_A6000, "tinyllama-1.1b", tasks, [MLORA, f"{MLORA}:batch=off"])
        rows.append(["7", "1.1B: BatchLoRA's throughput over none", "tasks", tasks, *over(batched, apart)])
    for count in (None, 1):
        for tasks in (1, 2, 3, 4):
            ours, flushed = compare(planner, EIGHT_3090, "llama2-7b", tasks, [MLORA, ONE_F_ONE_B], count=count)
            saved = ratio(ours.step_seconds, flushed.step_seconds)
            rows.append(
                [
                    "7",
                    f"7B at 1 Gbit/s: time saved against 1F1B, microbatches {count or 'each its best'}",
                    "tasks",
                    tasks,
                    None if saved is None else 1 - saved,
                    f"{ours.command}; {flushed.command}",
                ]
            )
    return rows


def vary(planner: Planner, report: Report) -> None:
    report.table(
        "varied",
        ["figure", "quantity", "varied", "value", "ours", "command"],
        vary_launches(planner) + vary_tasks(planner),
    )
