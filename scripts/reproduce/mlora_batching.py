"""mLoRA figure 16: what pruning BatchLoRA's graph saves on one GPU."""

from mlora_completion import find
from mlora_settings import MLORA, ONE_A6000_INT8
from planning import Planner
from report import Panel, Report, Series


def figure_16(planner: Planner, report: Report) -> None:
    """Graph pruning on one GPU, as tasks are added."""
    counts = [1, 2, 4]
    policies = [MLORA, f"{MLORA}:pruning=off"]
    found = find(planner, ONE_A6000_INT8, "tinyllama-1.1b", policies, counts)
    pruned, whole = (found[counts[-1]][policy] for policy in policies)
    commands = f"{pruned.command}; {whole.command}"
    report.claim(
        "16", "graph pruning: latency saved, four tasks", 0.17, 1 - pruned.step_seconds / whole.step_seconds, commands
    )
    report.claim(
        "16",
        "graph pruning: memory saved, four tasks",
        0.07,
        1 - pruned.peak_gigabytes / whole.peak_gigabytes,
        commands,
    )
    report.plans("figure16", ["tasks"], [([count], plan) for count, plans in found.items() for plan in plans.values()])
    report.picture(
        "figure16",
        "16",
        "mLoRA figure 16: graph pruning, 1.1B on one A6000 (thin: proven lower bound; of memory: held all the time)",
        [
            Panel(
                "step",
                "seconds",
                counts,
                [
                    Series(
                        policy,
                        [found[count][policy].step_seconds for count in counts],
                        [found[count][policy].bound_seconds for count in counts],
                    )
                    for policy in policies
                ],
            ),
            Panel(
                "memory",
                "GB",
                counts,
                [
                    Series(
                        policy,
                        [found[count][policy].peak_gigabytes for count in counts],
                        [found[count][policy].held_gigabytes for count in counts],
                    )
                    for policy in policies
                ],
            ),
        ],
    )
