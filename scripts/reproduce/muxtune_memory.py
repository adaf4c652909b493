"""MuxTune figure 17: memory of the fullest GPU as tasks are added, every task resident."""

from muxtune_batching import memory_items
from muxtune_settings import GPT_2_7B, LLAMA_7B, MUXTUNE, NEMO_RESIDENT, SL_PEFT, Setup, WL_A, WL_B, table2_workload
from planning import Dataset, Plan, Planner, ratio
from report import Panel, Report, Series

# What 17(b) breaks down, and what each curve reaches: tasks that fit, ratios within memory, ratios at 32 tasks.
PAPER = {"WL-A": (15, 4.67, 1.44, 5.29, 1.46), "WL-B": (11, 3.57, 1.37, None, None)}
MOST_TASKS = 32


def extrapolated(plans: dict[int, Plan], tasks: int) -> float:
    """Beyond what fits, the line through the first and the last number of tasks that do."""
    fitting = [count for count, plan in plans.items() if plan.peak_gigabytes]
    first, last = plans[fitting[0]].peak_gigabytes, plans[fitting[-1]].peak_gigabytes
    return first + (last - first) / (fitting[-1] - fitting[0]) * (tasks - fitting[0])


def curves(planner: Planner, name: str, setup: Setup, datasets: list[Dataset]) -> dict[str, dict[int, Plan]]:
    """Plans by policy and number of tasks."""
    policies = [NEMO_RESIDENT, SL_PEFT, MUXTUNE]
    # All three run on NeMo, whose loss is Megatron-LM's.
    profile = planner.profile("a40", "bf16", "a40-megatron", loss_in_place=True)
    found: dict[str, dict[int, Plan]] = {policy: {} for policy in policies}
    for tasks in range(1, MOST_TASKS + 1):
        file = table2_workload(planner, name, setup.backbone, datasets, tasks)
        cluster = setup.cluster(planner)
        for plan in planner.compare(file, cluster, policies, profile=profile, microbatches=1, **setup.flags):
            found[plan.policy][tasks] = plan
    return found


def claim_curves(report: Report, name: str, found: dict[str, dict[int, Plan]]) -> None:
    fits, over_nemo, over_sl, over_nemo_all, over_sl_all = PAPER[name]
    nemo, padded, ours = found[NEMO_RESIDENT], found[SL_PEFT], found[MUXTUNE]
    most = max(tasks for tasks, plan in nemo.items() if plan.peak_gigabytes)
    report.claim("17", f"{name}: NeMo's tasks that fit, taking turns", fits, most, nemo[most].command)
    for text, tasks, paper, above in (
        (f"NeMo over MuxTune, {fits} tasks", fits, over_nemo, nemo[fits].peak_gigabytes or extrapolated(nemo, fits)),
        (f"SL-PEFT over MuxTune, {fits} tasks", fits, over_sl, padded[fits].peak_gigabytes),
        ("NeMo over MuxTune, 32 tasks", MOST_TASKS, over_nemo_all, extrapolated(nemo, MOST_TASKS)),
        ("SL-PEFT over MuxTune, 32 tasks", MOST_TASKS, over_sl_all, padded[MOST_TASKS].peak_gigabytes),
    ):
        if paper:
            report.claim("17", f"{name}: {text}", paper, ratio(above, ours[tasks].peak_gigabytes), ours[tasks].command)


def figure_17(planner: Planner, report: Report) -> None:
    """Thin lines: what the fullest GPU holds all the time, whatever the order of the work."""
    memory_items(planner, report)
    rows, panels = [], []
    for name, setup, datasets in (("WL-A", GPT_2_7B, WL_A), ("WL-B", LLAMA_7B, WL_B)):
        found = curves(planner, name, setup, datasets)
        claim_curves(report, name, found)
        rows += [([name, tasks], plan) for plans in found.values() for tasks, plan in plans.items()]
        counts = list(range(1, MOST_TASKS + 1))
        panels.append(
            Panel(
                f"{setup.backbone}, {name}, tp {setup.tp}, pp {setup.pp}",
                "GB on the fullest GPU",
                [count if count % 4 == 0 else "" for count in counts],
                [
                    Series(
                        policy,
                        [plan.peak_gigabytes for plan in plans.values()],
                        [plan.held_gigabytes for plan in plans.values()],
                    )
                    for policy, plans in found.items()
                ],
                lines=True,
            )
        )
    report.plans("figure17", ["workload", "tasks"], rows)
    title = "MuxTune figure 17: memory (a line ends where memory does; thin: held all the time)"
    report.picture("figure17", "17", title, panels)
