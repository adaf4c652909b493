"""mLoRA section 3.3.2 and figure 14: kernels launched, with tasks batched or apart, with the graph pruned or not."""

import shlex

from mlora_settings import BACKBONES
from planning import PAPERS_COMMAND, Planner
from report import Panel, Report, Series

COMMAND = shlex.join(PAPERS_COMMAND)
PEFT, BATCHED, WHOLE_GRAPH = "peft", "batched", "batched, graph not pruned"
SHOWN = {PEFT: "PEFT", BATCHED: "BatchLoRA", WHOLE_GRAPH: "BatchLoRA, not pruned"}
TASKS = [1, 2, 4]
SHARES = {"tinyllama-1.1b": 0.10, "llama2-7b": 0.075, "llama2-13b": 0.04}
COLUMNS = [
    "adapter_launches",
    "launches",
    "launch_seconds",
    "kernel_seconds",
    "step_seconds",
    "launch_share",
]
Launches = dict[tuple[str, str, int], dict]  # by backbone, how tasks run, how many


def launches(planner: Planner) -> Launches:
    return {(row["backbone"], row["runs"], row["tasks"]): row for row in planner.papers()["launches"]}


def launch_cost(row: dict) -> float:
    return row["launch_seconds"] / row["launches"]


def cost_for_share(row: dict, share: float) -> float:
    """What a launch has to cost for launches to be this share of a step in which the GPU waits for each."""
    return row["kernel_seconds"] * share / (1 - share) / row["launches"]


def saved_with_waiting(found: Launches, backbone: str, tasks: int, cost: float) -> float:
    """By batching, of PEFT's time, were the GPU to wait for every launch."""
    apart, together = (found[backbone, runs, tasks] for runs in (PEFT, BATCHED))
    seconds = [row["kernel_seconds"] + row["launches"] * cost for row in (apart, together)]
    return 1 - seconds[1] / seconds[0]


def alpha_and_beta(found: Launches, backbone: str) -> tuple[float, float]:
    one = found[backbone, PEFT, 1]
    return one["launches"] - one["adapter_launches"], one["adapter_launches"]


def claim_launches(report: Report, found: Launches) -> None:
    tasks = TASKS[-1]
    for backbone, short in BACKBONES.items():
        alpha, beta = alpha_and_beta(found, backbone)
        batched = found[backbone, BATCHED, tasks]["launches"]
        text = f"{short}, {tasks} tasks: launches batched"
        report.claim("3.3.2", f"{text}, over alpha + k beta", 1, batched / (alpha + tasks * beta), COMMAND)
        saved = 1 - batched / found[backbone, PEFT, tasks]["launches"]
        report.claim("3.3.2", f"{text}, saved: about (k - 1) / k", (tasks - 1) / tasks, saved, COMMAND)


def panels(found: Launches, tasks: int) -> list[Panel]:
    """Of each task's step, as figure 14 shows them; a step is bounded by its kernels, which wait for no launch."""

    def series(of_row, bound=None) -> list[Series]:
        return [
            Series(
                name,
                [of_row(found[backbone, runs, tasks]) for backbone in BACKBONES],
                [bound(found[backbone, runs, tasks]) for backbone in BACKBONES] if bound else None,
                [SHARES[backbone] for backbone in BACKBONES] if of_row is launch_share and runs == PEFT else None,
            )
            for runs, name in SHOWN.items()
        ]

    def launch_share(row: dict) -> float:
        return row["launch_share"]

    groups = list(BACKBONES.values())
    return [
        Panel(
            f"(a) a task's step with each launch waited for, {tasks} tasks",
            "seconds",
            groups,
            series(
                lambda row: (row["launch_seconds"] + row["kernel_seconds"]) / tasks,
                lambda row: row["kernel_seconds"] / tasks,
            ),
        ),
        Panel("(b) share of launches", "share of the step", groups, series(launch_share)),
        Panel("(c) kernels", "seconds", groups, series(lambda row: row["kernel_seconds"] / tasks)),
    ]


def figure_14(planner: Planner, report: Report) -> None:
    found = launches(planner)
    claim_launches(report, found)
    for backbone, short in BACKBONES.items():
        share = found[backbone, PEFT, 1]["launch_share"]
        report.claim("14", f"{short}: share of launches in PEFT's step", SHARES[backbone], share, COMMAND)
    report.table(
        "figure14",
        ["backbone", "runs", "tasks", *COLUMNS, "command"],
        [[*key, *(row[column] for column in COLUMNS), COMMAND] for key, row in found.items()],
    )
    report.picture(
        "figure14",
        "14",
        "mLoRA figure 14: launches on one A6000, int8 (thin: kernels alone; crosses: the paper)",
        panels(found, TASKS[-1]),
    )
    report.picture(
        "section3.3.2",
        "3.3.2",
        "mLoRA section 3.3.2: launches of k tasks (crosses: k (alpha + beta) and alpha + k beta)",
        [launch_panel(found, backbone) for backbone in BACKBONES],
    )


def launch_panel(found: Launches, backbone: str) -> Panel:
    alpha, beta = alpha_and_beta(found, backbone)
    forms = {
        PEFT: [tasks * (alpha + beta) for tasks in TASKS],
        BATCHED: [alpha + tasks * beta for tasks in TASKS],
        WHOLE_GRAPH: None,
    }
    return Panel(
        backbone,
        "launches of a step of all tasks",
        [f"k {tasks}" for tasks in TASKS],
        [
            Series(name, [found[backbone, runs, tasks]["launches"] for tasks in TASKS], paper=forms[runs])
            for runs, name in SHOWN.items()
        ],
    )
