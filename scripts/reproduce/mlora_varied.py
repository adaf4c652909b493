"""One thing varied at a time, to show what a claim of mLoRA's that is missed depends on: results/mlora/varied.csv."""

from mlora_launches import COMMAND, PEFT, SHARES, cost_for_share, launch_cost, launches, saved_with_waiting
from mlora_settings import (
    BACKBONES,
    EIGHT_3090,
    FOUR_A6000,
    FOUR_A6000_INT8,
    HF_PEFT,
    MLORA,
    ONE_A6000_INT8,
    ONE_F_ONE_B,
    compare,
    over,
)
from mlora_varied_links import vary_bandwidth, vary_fsdp_units, vary_staging
from planning import Planner, ratio
from report import Report

LAUNCH_MICROSECONDS = [5, 10, 20, 40]
# What the derivative of a split moves for each task, in numbers of 16 bits a token of all tasks: as modelled; as
# PyTorch's derivative of a slice does (zeros, a copy of the task's rows, an addition), less what the pruned graph adds;
# the same where adapters run in f32.
SPLIT_NUMBERS = [2, 4 - 1 / 4, 2 * (4 - 1 / 4)]


def vary_launches(planner: Planner) -> list:
    """What the host takes to start a kernel, dispatch by the framework included."""
    rows = []
    for microseconds in LAUNCH_MICROSECONDS:
        profile = planner.profile(
            "a6000", "int8", f"a6000-int8-launch{microseconds}", recomputes=True, launch_seconds=microseconds * 1e-6
        )
        tasks = 4
        for backbone, short in BACKBONES.items():
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


def vary_waiting(planner: Planner) -> list:
    """Were the GPU to wait for every launch, as figure 14 adds them up; with what a launch costs here, and with what
    gives the paper's share of launches."""
    rows, found = [], launches(planner)
    for backbone, short in BACKBONES.items():
        one = found[backbone, PEFT, 1]
        for cost in (launch_cost(one), cost_for_share(one, SHARES[backbone])):
            for tasks in (2, 4):
                quantity = f"one GPU, {short}, {tasks} tasks: time saved against PEFT, each launch waited for"
                value = saved_with_waiting(found, backbone, tasks, cost)
                rows.append(["7", quantity, "launch, microseconds", cost * 1e6, value, COMMAND])
    return rows


def vary_split(planner: Planner) -> list:
    """All of it is memory traffic: in proportion to what the plan without pruning takes longer."""
    rows = []
    for backbone, short in BACKBONES.items():
        pruned, whole = compare(planner, ONE_A6000_INT8, backbone, 4, [MLORA, f"{MLORA}:pruning=off"])
        if pruned.microbatches != whole.microbatches:
            continue
        longer = whole.step_seconds - pruned.step_seconds
        for numbers in SPLIT_NUMBERS:
            split = longer * numbers / SPLIT_NUMBERS[0]
            saved = split / (pruned.step_seconds + split)
            quantity = f"graph pruning, {short}, 4 tasks: latency saved"
            commands = f"{pruned.command}; {whole.command}"
            rows.append(["16", quantity, "numbers a token that a task's split moves", numbers, saved, commands])
    return rows


def vary_tasks(planner: Planner) -> list:
    rows = []
    for tasks in (5, 6, 7, 8):
        batched, apart = compare(planner, FOUR_A6000, "tinyllama-1.1b", tasks, [MLORA, f"{MLORA}:batch=off"])
        rows.append(["7", "1.1B: BatchLoRA's throughput over none", "tasks", tasks, *over(batched, apart)])
    return rows


def vary_microbatches(planner: Planner) -> list:
    """What of the time saved against 1F1B is more work a microbatch, and what fewer bubbles."""
    rows = []
    for text, machine, backbone, counts in (
        ("7B at 1 Gbit/s", EIGHT_3090, "llama2-7b", (None, 1)),
        ("70B", FOUR_A6000_INT8, "llama2-70b", (None, 8)),
    ):
        for count in counts:
            for tasks in (1, 2, 3, 4):
                ours, flushed = compare(planner, machine, backbone, tasks, [MLORA, ONE_F_ONE_B], count=count)
                saved = ratio(ours.step_seconds, flushed.step_seconds)
                rows.append(
                    [
                        "7",
                        f"{text}: time saved against 1F1B, microbatches {count or 'each its best'}",
                        "tasks",
                        tasks,
                        None if saved is None else 1 - saved,
                        f"{ours.command}; {flushed.command}",
                    ]
                )
    return rows


def vary_filling(planner: Planner) -> list:
    """Batches split just as far as tasks are fewer than stages (section 3.2.1), in place of the fastest number."""
    rows = []
    for tasks in (1, 2, 3, 4, 6, 8):
        count = -(-EIGHT_3090.gpus // tasks)
        ours = compare(planner, EIGHT_3090, "llama2-7b", tasks, [MLORA], count=count)[0]
        flushed = compare(planner, EIGHT_3090, "llama2-7b", tasks, [ONE_F_ONE_B])[0]
        saved = ratio(ours.step_seconds, flushed.step_seconds)
        quantity = "7B at 1 Gbit/s: time saved against 1F1B's best, microbatches that fill the stages"
        commands = f"{ours.command}; {flushed.command}"
        rows.append(["7", quantity, "tasks", tasks, None if saved is None else 1 - saved, commands])
    return rows


def vary(planner: Planner, report: Report) -> None:
    rows = []
    for study in (
        vary_launches,
        vary_waiting,
        vary_split,
        vary_tasks,
        vary_microbatches,
        vary_filling,
        vary_bandwidth,
        vary_fsdp_units,
        vary_staging,
    ):
        rows += study(planner)
    report.table("varied", ["figure", "quantity", "varied", "value", "ours", "command"], rows)
