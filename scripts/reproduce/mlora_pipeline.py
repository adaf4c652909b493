"""mLoRA figures 9 and 10 and section 3.2.2: bubbles against closed forms, and what overlapping communication gains."""

from mlora_settings import (
    BACKBONES,
    BATCH,
    FOUR_A6000,
    FOUR_A6000_STAGED,
    GSM8K,
    MLORA,
    ONE_F_ONE_B,
    Machine,
    compare,
    workload,
)
from planning import Planner
from report import Panel, Report, Series

STAGES = 4
TASKS = [1, 2, 3, 4]
MICROBATCHES = [1, 2, 4, 8]
HIDDEN = {"tinyllama-1.1b": 2048, "llama2-7b": 4096, "llama2-13b": 5120}
BYTES_A_NUMBER = 4


def mlora_bubbles(stages: int, microbatches: int, tasks: int) -> float:
    """Section 3.2.2; without microbatches max{(D - L) / D, 0}, which it is for N = 1."""
    return max((stages - 1 + microbatches - tasks * microbatches) / (stages + microbatches - 1), 0)


def drained_bubbles(stages: int, microbatches: int) -> float:
    """GPipe and 1F1B: every task's step drains the pipeline."""
    return (stages - 1) / (microbatches + stages - 1)


def figure_9(planner: Planner, report: Report) -> None:
    rows, measured, closed = [], {}, {}
    for policy, counts in ((ONE_F_ONE_B, [1]), (f"{MLORA}:batch=off", TASKS)):
        for tasks in counts:
            for count in MICROBATCHES:
                plan = compare(planner, FOUR_A6000, "llama2-7b", tasks, [policy], count=count)[0]
                key = policy, tasks, count
                measured[key] = plan.bubble_ratio
                closed[key] = (
                    drained_bubbles(STAGES, count) if policy == ONE_F_ONE_B else mlora_bubbles(STAGES, count, tasks)
                )
                rows.append(([tasks, count, closed[key]], plan))
                if plan.bubble_ratio is not None and (count == 1 or (tasks == 1 and count == 8)):
                    report.claim(
                        "9",
                        f"{policy.split(':')[0]}, L {tasks}, N {count}: busy (1 - bubble ratio)",
                        1 - closed[key],
                        1 - plan.bubble_ratio,
                        plan.command,
                    )
    report.plans("figure9", ["tasks", "microbatches_asked", "closed_form_bubble_ratio"], rows)
    series = [
        Series(
            f"{policy.split(':')[0]}, L {tasks}",
            [measured[policy, tasks, count] for count in MICROBATCHES],
            [closed[policy, tasks, count] for count in MICROBATCHES],
        )
        for policy, tasks in dict.fromkeys((policy, tasks) for policy, tasks, _ in measured)
    ]
    report.picture(
        "figure9",
        "9",
        "mLoRA figure 9: bubble ratio (thin: closed forms of section 3.2.2)",
        [
            Panel(
                f"llama2-7b, {STAGES} stages",
                "bubble ratio",
                [f"N {count}" for count in MICROBATCHES],
                series,
                lines=True,
            )
        ],
    )


def gain_of_overlap(planner: Planner, machine: Machine, backbone: str) -> tuple[float, list, object]:
    """2 C_S + 2 C_R + D_F + D_B over max{C_S, C_R, D_F} + max{C_S, C_R, D_B} (section 3.2.2), with the busy time of a
    plan as D_F + D_B and the link's own speed as C. D_B is twice D_F less the weights' gradients: taken as equal."""
    tasks = STAGES
    plan = compare(planner, machine, backbone, tasks, [f"{MLORA}:batch=off"], count=BATCH)[0]
    file = workload(planner, backbone, tasks)
    link = planner.link(file, machine.cluster(planner))
    computing = plan.busy_share * plan.step_seconds / tasks / BATCH
    message = GSM8K.max_length * HIDDEN[backbone] * BYTES_A_NUMBER / link["bandwidth_bytes_per_second"]
    sending = message + link["latency_seconds"]
    overlapped = 2 * max(sending, computing / 2)
    return (4 * sending + computing) / overlapped, [computing, sending], plan


def figure_10(planner: Planner, report: Report) -> None:
    rows, gains = [], {}
    for machine in (FOUR_A6000_STAGED, FOUR_A6000):
        for (backbone, short), paper in zip(BACKBONES.items(), (1.60, 1.20, 1.16)):
            gain, times, plan = gain_of_overlap(planner, machine, backbone)
            gains[machine.link, short] = gain
            rows.append(([machine.link, gain, *times], plan))
            if machine is FOUR_A6000_STAGED:
                report.claim(
                    "10",
                    f"{short}: overlap over none, by formula, cpu-staged",
                    paper,
                    gain,
                    plan.command,
                )
    report.plans("figure10", ["link", "gain", "computing_seconds", "sending_seconds"], rows)
    links = [FOUR_A6000_STAGED.link, FOUR_A6000.link]
    report.picture(
        "figure10",
        "10",
        "mLoRA figure 10: overlapping communication, by the formula of section 3.2.2",
        [
            Panel(
                "four A6000s",
                "throughput, over no overlap",
                list(BACKBONES.values()),
                [Series(link, [gains[link, short] for short in BACKBONES.values()]) for link in links],
            )
        ],
    )
