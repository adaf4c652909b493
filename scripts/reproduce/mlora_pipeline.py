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
from planning import Plan, Planner, ratio
from report import Panel, Report, Series

STAGES = 4
TASKS = [1, 2, 3, 4]
MICROBATCHES = [1, 2, 4, 8]
HIDDEN = {"tinyllama-1.1b": 2048, "llama2-7b": 4096, "llama2-13b": 5120}
BYTES_A_NUMBER = 4
OVERLAP = {f"{MLORA}:batch=off": "overlapped", f"{MLORA}:batch=off:overlap=off": "not overlapped"}
GAINS = {"tinyllama-1.1b": 1.60, "llama2-7b": 1.20, "llama2-13b": 1.16}


def mlora_bubbles(stages: int, microbatches: int, tasks: int) -> float:
    """Section 3.2.2; without microbatches max{(D - L) / D, 0}, which it is for N = 1."""
    return max((stages - 1 + microbatches - tasks * microbatches) / (stages + microbatches - 1), 0)


def drained_bubbles(stages: int, microbatches: int) -> float:
    """GPipe and 1F1B: every task's step drains the pipeline."""
    return (stages - 1) / (microbatches + stages - 1)


def figure_9(planner: Planner, report: Report) -> None:
    rows, plans, closed = [], {}, {}
    for policy, counts in ((ONE_F_ONE_B, [1]), (f"{MLORA}:batch=off", TASKS)):
        for tasks in counts:
            for count in MICROBATCHES:
                plan = compare(planner, FOUR_A6000, "llama2-7b", tasks, [policy], count=count)[0]
                key = policy, tasks, count
                plans[key] = plan
                drains = policy == ONE_F_ONE_B
                closed[key] = drained_bubbles(STAGES, count) if drains else mlora_bubbles(STAGES, count, tasks)
                rows.append(([tasks, count, closed[key], plan.bubble_bound, plan.busiest_share], plan))
                if plan.bubble_ratio is not None and (count == 1 or (tasks == 1 and count == 8)):
                    report.claim(
                        "9",
                        f"{policy.split(':')[0]}, L {tasks}, N {count}: busy (1 - bubble ratio)",
                        1 - closed[key],
                        1 - plan.bubble_ratio,
                        plan.command,
                    )
    columns = ["tasks", "microbatches_asked", "closed_form_bubble_ratio", "lower_bound_bubble_ratio"]
    report.plans("figure9", [*columns, "busiest_stage_busy_share"], rows)
    series = [
        Series(
            f"{policy.split(':')[0]}, L {tasks}",
            [plans[policy, tasks, count].bubble_ratio for count in MICROBATCHES],
            [plans[policy, tasks, count].bubble_bound for count in MICROBATCHES],
            [closed[policy, tasks, count] for count in MICROBATCHES],
        )
        for policy, tasks in dict.fromkeys((policy, tasks) for policy, tasks, _ in plans)
    ]
    report.picture(
        "figure9",
        "9",
        "mLoRA figure 9: bubble ratio (thin: at the proven lower bound; crosses: closed forms of section 3.2.2)",
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


def gain_by_formula(planner: Planner, machine: Machine, backbone: str, plan: Plan) -> float:
    """2 C_S + 2 C_R + D_F + D_B over max{C_S, C_R, D_F} + max{C_S, C_R, D_B} (section 3.2.2), with the busy time of a
    plan as D_F + D_B and the link's own speed as C. D_B is twice D_F less the weights' gradients: taken as equal."""
    microbatches = STAGES * plan.microbatches
    link = planner.link(workload(planner, backbone, STAGES), machine.cluster(planner))
    computing = plan.busy_share * plan.step_seconds / microbatches
    tokens = STAGES * BATCH * GSM8K.max_length / microbatches
    message = tokens * HIDDEN[backbone] * BYTES_A_NUMBER / link["bandwidth_bytes_per_second"]
    sending = message + link["latency_seconds"]
    return (4 * sending + computing) / (2 * max(sending, computing / 2))


def figure_10(planner: Planner, report: Report) -> None:
    """Replays of the same tasks with messages beside the computing and in its way."""
    rows, panels = [], []
    for machine in (FOUR_A6000_STAGED, FOUR_A6000):
        gains = {}
        for backbone, short in BACKBONES.items():
            overlapped, apart = compare(planner, machine, backbone, STAGES, list(OVERLAP))
            gain = ratio(overlapped.effective, apart.effective)
            formula = gain_by_formula(planner, machine, backbone, overlapped)
            gains[backbone] = gain, ratio(overlapped.effective_bound, apart.effective), formula
            rows += [([machine.link, backbone, gain, formula], plan) for plan in (overlapped, apart)]
            if machine is FOUR_A6000_STAGED:
                text = f"{short}: overlap over none, {machine.link}"
                report.claim("10", text, GAINS[backbone], gain, f"{overlapped.command}; {apart.command}")
        panels.append(
            Panel(
                f"four A6000s, {machine.link}",
                "throughput, over no overlap",
                list(BACKBONES.values()),
                [
                    Series(
                        "replayed",
                        [gain for gain, _, _ in gains.values()],
                        [bound for _, bound, _ in gains.values()],
                        list(GAINS.values()) if machine is FOUR_A6000_STAGED else None,
                    ),
                    Series("by the formula of section 3.2.2", [formula for _, _, formula in gains.values()]),
                ],
            )
        )
    report.plans("figure10", ["link", "backbone", "gain", "gain_by_formula"], rows)
    report.picture(
        "figure10",
        "10",
        "mLoRA figure 10: overlapping communication (thin: at the proven lower bound; crosses: the paper)",
        panels,
    )
