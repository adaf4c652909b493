"""MuxTune figure 20: chunks against padding every sequence to the longest."""

from muxtune_settings import LLAMA_7B, MUXTUNE, SL_PEFT, WL_A, WL_B, table2_workload
from planning import Planner, ratio
from report import Panel, Report, Series


def figure_20(planner: Planner, report: Report) -> None:
    """The planner splits the tasks into hTasks as it sees fit; the paper has all of them in one."""
    rows, panels = [], []
    paper = {("WL-A", 64): {"overall": 2.33, "effective": 3.59}, ("WL-B", 128): {"overall": 2.57, "effective": 3.77}}
    for (name, chunk), claims in paper.items():
        datasets = WL_A if name == "WL-A" else WL_B
        plans = {
            tasks: planner.compare(
                table2_workload(planner, name, "llama2-7b", datasets, tasks),
                LLAMA_7B.cluster(planner),
                [SL_PEFT, f"{MUXTUNE}:chunk={chunk}"],
                microbatches=1,
                **LLAMA_7B.flags,
            )
            for tasks in range(1, 9)
        }
        rows += [([name, chunk, tasks], plan) for tasks, both in plans.items() for plan in both]
        for kind, value in claims.items():
            speed = "computed" if kind == "overall" else "effective"
            over = {
                tasks: ratio(getattr(ours, speed), getattr(padded, speed)) or 0
                for tasks, (padded, ours) in plans.items()
            }
            best = max(over, key=over.get)
            note = " (swapped)" if name == "WL-B" else ""
            report.claim(
                "20",
                f"chunk {chunk}, {kind} over SL-PEFT, up to{note}",
                value,
                over[best],
                f"{plans[best][1].command}; {plans[best][0].command}",
            )
        panels.append(
            Panel(
                f"{name}, chunk {chunk}",
                "tokens/s",
                list(plans),
                [
                    Series(
                        "SL-PEFT, overall",
                        [both[0].computed for both in plans.values()],
                        [both[0].computed_bound for both in plans.values()],
                    ),
                    Series(
                        "SL-PEFT-E",
                        [both[0].effective for both in plans.values()],
                        [both[0].effective_bound for both in plans.values()],
                    ),
                    Series(
                        "MuxTune, overall",
                        [both[1].computed for both in plans.values()],
                        [both[1].computed_bound for both in plans.values()],
                    ),
                    Series(
                        "MuxTune-E",
                        [both[1].effective for both in plans.values()],
                        [both[1].effective_bound for both in plans.values()],
                    ),
                ],
                lines=True,
            )
        )
    report.plans("figure20", ["workload", "chunk", "tasks"], rows)
    report.picture("figure20", "20", "MuxTune figure 20: chunks (thin: at the proven lower bound)", panels)
