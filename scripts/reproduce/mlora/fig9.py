"""Figure 9: bubbles against the closed forms of section 3.2.2."""

from .. import Braid, Panel, Report, series_of
from .settings import FOUR_A6000, ONE_F_ONE_B, UNBATCHED

STAGES = FOUR_A6000.gpus
MICROBATCHES = [1, 2, 4, 8]
TASKS = {ONE_F_ONE_B: [1], UNBATCHED: [1, 2, 3, 4]}
COLUMNS = ["tasks", "microbatches_asked", "closed_form_bubble_ratio", "lower_bound_bubble_ratio"]
COLUMNS += ["busiest_stage_busy_share"]


def closed_form(policy: str, tasks: int, microbatches: int) -> float:
    """Of 1F1B as of GPipe: every task's step drains the pipeline. mLoRA's without microbatches is max{(D - L) / D, 0},
    which this is for N = 1."""
    if policy == ONE_F_ONE_B:
        return (STAGES - 1) / (microbatches + STAGES - 1)
    return max((STAGES - 1 + microbatches - tasks * microbatches) / (STAGES + microbatches - 1), 0)


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("9")
    rows, series = [], []
    for policy, counts in TASKS.items():
        for tasks in counts:
            name = f"{policy.split(':')[0]}, L {tasks}"
            plans = [FOUR_A6000.compare(braid, "llama2-7b", tasks, [policy], count)[0] for count in MICROBATCHES]
            closed = [closed_form(policy, tasks, count) for count in MICROBATCHES]
            for count, form, plan in zip(MICROBATCHES, closed, plans):
                rows.append(([tasks, count, form, plan.bubble_bound, plan.busiest_share], plan))
                if plan.bubble_ratio is not None and (count == 1 or (tasks == 1 and count == MICROBATCHES[-1])):
                    text = f"{name}, N {count}: busy (1 - bubble ratio)"
                    figure.claim(text, 1 - form, 1 - plan.bubble_ratio, plan.command)
            series.append(series_of(name, plans, "bubble_ratio", closed))
    figure.plans(COLUMNS, rows)
    groups = [f"N {count}" for count in MICROBATCHES]
    title = "mLoRA figure 9: bubble ratio (crosses: closed forms of section 3.2.2)"
    see = "Bubbles follow the closed forms: the more tasks (L) or microbatches (N), the fewer"
    figure.picture(title, [Panel(f"llama2-7b, {STAGES} stages", "bubble ratio", groups, series, lines=True)], see=see)
