"""Launches, splits, tasks and microbatches varied one at a time: rows of varied.csv."""

from collections.abc import Iterator

from .. import PAPERS_COMMAND, Braid, commands, over, saved
from .launches import BATCHED, PEFT, SHARES, launches
from .settings import BACKBONES, EIGHT_3090, FOUR_A6000, FOUR_A6000_INT8, HF_PEFT, MLORA, ONE_A6000_INT8, ONE_F_ONE_B
from .settings import UNBATCHED, UNPRUNED

LAUNCH_MICROSECONDS = [5, 10, 20, 40]
# What the derivative of a split moves for each task, in numbers of 16 bits a token of all tasks: as modelled; as
# PyTorch's derivative of a slice does (zeros, a copy of the task's rows, an addition), less what the pruned graph adds;
# the same where adapters run in f32.
SPLIT_NUMBERS = [2, 4 - 1 / 4, 2 * (4 - 1 / 4)]


def launch_costs(braid: Braid) -> Iterator[list]:
    """What the host takes to start a kernel, dispatch by the framework included."""
    for microseconds in LAUNCH_MICROSECONDS:
        name, seconds = f"a6000-int8-launch{microseconds}", microseconds * 1e-6
        profile = ONE_A6000_INT8.profile(braid, name, launch_seconds=seconds)
        varied = ["launch, microseconds", microseconds]
        for backbone, short in BACKBONES.items():
            policies = [HF_PEFT, MLORA, UNPRUNED]
            peft, ours, whole = ONE_A6000_INT8.compare(braid, backbone, 4, policies, profile=profile)
            yield ["7", f"one GPU, {short}, 4 tasks: time saved against PEFT", *varied, *saved(ours, peft)]
            if backbone == "tinyllama-1.1b":
                yield ["16", f"graph pruning, {short}, 4 tasks: latency saved", *varied, *saved(ours, whole)]


def waiting(braid: Braid) -> Iterator[list]:
    """Were the GPU to wait for every launch, as figure 14 adds them up; with what a launch costs here, and with what
    gives the paper's share of launches."""
    found = launches(braid)
    for backbone, short in BACKBONES.items():
        one, share = found[backbone, PEFT, 1], SHARES[backbone]
        here = one["launch_seconds"] / one["launches"]
        of_share = one["kernel_seconds"] * share / (1 - share) / one["launches"]
        for cost in (here, of_share):
            for tasks in (2, 4):
                apart, together = (
                    row["kernel_seconds"] + row["launches"] * cost
                    for row in (found[backbone, runs, tasks] for runs in (PEFT, BATCHED))
                )
                quantity = f"one GPU, {short}, {tasks} tasks: time saved against PEFT, each launch waited for"
                yield ["7", quantity, "launch, microseconds", cost * 1e6, 1 - together / apart, PAPERS_COMMAND]


def splits(braid: Braid) -> Iterator[list]:
    """All of it is memory traffic: in proportion to what the plan without pruning takes longer."""
    for backbone, short in BACKBONES.items():
        pruned, whole = ONE_A6000_INT8.compare(braid, backbone, 4, [MLORA, UNPRUNED])
        if pruned.microbatches != whole.microbatches:
            continue
        longer = whole.step_seconds - pruned.step_seconds
        for numbers in SPLIT_NUMBERS:
            split = longer * numbers / SPLIT_NUMBERS[0]
            quantity, varied = (
                f"graph pruning, {short}, 4 tasks: latency saved",
                "numbers a token that a task's split moves",
            )
            yield ["16", quantity, varied, numbers, split / (pruned.step_seconds + split), commands(pruned, whole)]


def task_counts(braid: Braid) -> Iterator[list]:
    for tasks in (5, 6, 7, 8):
        batched, apart = FOUR_A6000.compare(braid, "tinyllama-1.1b", tasks, [MLORA, UNBATCHED])
        yield ["7", "1.1B: BatchLoRA's throughput over none", "tasks", tasks, *over(batched, apart)]


def microbatch_counts(braid: Braid) -> Iterator[list]:
    """What of the time saved against 1F1B is more work a microbatch, and what fewer bubbles."""
    for text, machine, backbone, counts in (
        ("7B at 1 Gbit/s", EIGHT_3090, "llama2-7b", (None, 1)),
        ("70B", FOUR_A6000_INT8, "llama2-70b", (None, 8)),
    ):
        for count in counts:
            quantity = f"{text}: time saved against 1F1B, microbatches {count or 'each its best'}"
            for tasks in (1, 2, 3, 4):
                ours, drained = machine.compare(braid, backbone, tasks, [MLORA, ONE_F_ONE_B], count)
                yield ["7", quantity, "tasks", tasks, *saved(ours, drained)]


def filling(braid: Braid) -> Iterator[list]:
    """Batches split just as far as tasks are fewer than stages (section 3.2.1), in place of the fastest number."""
    for tasks in (1, 2, 3, 4, 6, 8):
        ours = EIGHT_3090.compare(braid, "llama2-7b", tasks, [MLORA], -(-EIGHT_3090.gpus // tasks))[0]
        drained = EIGHT_3090.compare(braid, "llama2-7b", tasks, [ONE_F_ONE_B])[0]
        quantity = "7B at 1 Gbit/s: time saved against 1F1B's best, microbatches that fill the stages"
        yield ["7", quantity, "tasks", tasks, *saved(ours, drained)]
