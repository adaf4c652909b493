"""One thing varied at a time, to show what a missed claim depends on."""

from .. import Braid, Report, over
from .settings import DATA, LORAFUSION, MLORA, ONE_F_ONE_B, SEVENTY_B

BATCHES = [8, 16, 32]


def make(braid: Braid, report: Report) -> None:
    rows = []
    for batch in BATCHES:
        plans = SEVENTY_B.compare(braid, DATA["Het"], [ONE_F_ONE_B, MLORA, LORAFUSION], batch=batch, tp=1, pp=4)
        for policy, plan in plans.items():
            lead = over(plans[LORAFUSION], plan, "data")[0]
            rows.append(
                ["global batch", batch, policy, plan.data, lead, plan.bubble_ratio, plan.deployment, plan.command]
            )
    columns = ["varied", "value", "policy", "data_tokens_per_second", "lorafusion_over_it", "bubble_ratio"]
    report.table("varied", [*columns, "deployment", "command"], rows)
