"""Figure 17: memory of the fullest GPU as tasks are added, every task resident; and section 2.2's items of it."""

from .. import PAPERS_COMMAND, Braid, Figure, Panel, Plan, Report, ratio, series_of
from .settings import GPT_2_7B, LLAMA_7B, MUXTUNE, NEMO_RESIDENT, SL_PEFT, Setup, table_2

POLICIES = [NEMO_RESIDENT, SL_PEFT, MUXTUNE]
SETUPS = {"WL-A": GPT_2_7B, "WL-B": LLAMA_7B}
# What 17(b) breaks down, and what each curve reaches: tasks that fit, ratios within memory, ratios at 32 tasks.
PAPER = {"WL-A": (15, 4.67, 1.44, 5.29, 1.46), "WL-B": (11, 3.57, 1.37, None, None)}
MOST_TASKS = 32
Curves = dict[str, dict[int, Plan]]  # by policy and number of tasks


def claim_items(braid: Braid, figure: Figure) -> None:
    """Figure 17(b) breaks these down, section 2.2 tells them."""
    for fact in braid.papers()["facts"]:
        for source, unit in (("MuxTune 2.2", ", GB"), ("MuxTune fig. 17", ": tasks")):
            if fact["source"].startswith(source):
                figure.claim(f"{fact['what']}{unit}", fact["paper"], fact["ours"], PAPERS_COMMAND)


def curves(braid: Braid, name: str, setup: Setup) -> Curves:
    # All three run on NeMo, whose loss is Megatron-LM's.
    profile = braid.profile("a40", "bf16", "a40-megatron", loss_in_place=True)
    found: Curves = {policy: {} for policy in POLICIES}
    for tasks in range(1, MOST_TASKS + 1):
        load, cluster = table_2(name, tasks).write(braid, setup.backbone), setup.cluster(braid)
        flags = {"profile": profile, "microbatches": 1, "tp": setup.tp, "pp": setup.pp}
        for plan in braid.compare(load, cluster, POLICIES, **flags):
            found[plan.policy][tasks] = plan
    return found


def extrapolated(plans: dict[int, Plan], tasks: int) -> float:
    """Beyond what fits, the line through the first and the last number of tasks that do."""
    fitting = [count for count, plan in plans.items() if plan.peak_gigabytes]
    first, last = plans[fitting[0]].peak_gigabytes, plans[fitting[-1]].peak_gigabytes
    return first + (last - first) / (fitting[-1] - fitting[0]) * (tasks - fitting[0])


def claim_curves(figure: Figure, name: str, found: Curves) -> None:
    fits, over_nemo, over_sl, over_nemo_all, over_sl_all = PAPER[name]
    nemo, padded, ours = found.values()
    most = max(tasks for tasks, plan in nemo.items() if plan.peak_gigabytes)
    figure.claim(f"{name}: NeMo's tasks that fit, taking turns", fits, most, nemo[most].command)
    for baseline, tasks, paper, above in (
        ("NeMo", fits, over_nemo, nemo[fits].peak_gigabytes or extrapolated(nemo, fits)),
        ("SL-PEFT", fits, over_sl, padded[fits].peak_gigabytes),
        ("NeMo", MOST_TASKS, over_nemo_all, extrapolated(nemo, MOST_TASKS)),
        ("SL-PEFT", MOST_TASKS, over_sl_all, padded[MOST_TASKS].peak_gigabytes),
    ):
        if paper:
            text = f"{name}: {baseline} over MuxTune, {tasks} tasks"
            figure.claim(text, paper, ratio(above, ours[tasks].peak_gigabytes), ours[tasks].command)


def make(braid: Braid, report: Report) -> None:
    """Thin lines: what the fullest GPU holds all the time, whatever the order of the work."""
    figure = report.figure("17")
    claim_items(braid, figure)
    rows, panels = [], []
    ticks = [count if count % 4 == 0 else "" for count in range(1, MOST_TASKS + 1)]
    for name, setup in SETUPS.items():
        found = curves(braid, name, setup)
        claim_curves(figure, name, found)
        rows += [([name, tasks], plan) for plans in found.values() for tasks, plan in plans.items()]
        series = [series_of(policy, list(plans.values()), "peak_gigabytes") for policy, plans in found.items()]
        title = f"{setup.backbone}, {name}, tp {setup.tp}, pp {setup.pp}"
        panels.append(Panel(title, "GB on the fullest GPU", ticks, series, lines=True))
    figure.plans(["workload", "tasks"], rows)
    see = "NeMo keeps a backbone for each task and ends at 16 and 12 of them; of the others 32 fit"
    figure.picture("MuxTune figure 17: memory (a line ends where memory does; thin: held all the time)", panels, see=see)
