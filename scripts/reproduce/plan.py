"""What `braid compare` predicts of one policy, and what is said of two of them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """Where there is no plan, `error` says why and every number is None."""

    policy: str
    command: str
    error: str = ""
    deployment: str = ""
    microbatches: int | None = None
    htasks: int | None = None
    step_seconds: float | None = None
    bound_seconds: float | None = None  # no step of this plan's work can be shorter
    bound_by: str = ""
    effective: float | None = None  # billed tokens a second
    computed: float | None = None
    data: float | None = None  # tokens of samples a second, without padding
    bubble_ratio: float | None = None
    busy_share: float | None = None  # of the compute stream without the collectives it waits for, mean over the stages
    utilization: float | None = None  # achieved / peak FLOP rate
    busiest_share: float | None = None  # the same of the busiest stage
    peak_gigabytes: float | None = None  # of the fullest rank
    planning_seconds: float | None = None
    held_gigabytes: float | None = None  # of the rank that holds most: no order of the work needs less

    @property
    def effective_bound(self) -> float | None:
        """Billed tokens a second were a step to take no longer than its proven lower bound."""
        return self.effective * self.step_seconds / self.bound_seconds if self.effective else None

    @property
    def data_bound(self) -> float | None:
        return self.data * self.step_seconds / self.bound_seconds if self.data else None

    @property
    def computed_bound(self) -> float | None:
        return self.computed * self.step_seconds / self.bound_seconds if self.computed else None

    @property
    def bubble_bound(self) -> float | None:
        """The bubble ratio were a step of the same work to take no longer than its proven lower bound."""
        if self.bubble_ratio is None:
            return None
        return max(0, 1 - (1 - self.bubble_ratio) * self.step_seconds / self.bound_seconds)


# What a plan's proven bound says in the place of each measure.
BOUNDS = {
    "effective": "effective_bound",
    "computed": "computed_bound",
    "data": "data_bound",
    "step_seconds": "bound_seconds",
    "bubble_ratio": "bubble_bound",
    "peak_gigabytes": "held_gigabytes",
}

# Columns of tables, and the fields that they hold.
COLUMNS = {
    "policy": "policy",
    "deployment": "deployment",
    "microbatches": "microbatches",
    "htasks": "htasks",
    "step_seconds": "step_seconds",
    "lower_bound_seconds": "bound_seconds",
    "bound_by": "bound_by",
    "effective_tokens_per_second": "effective",
    "computed_tokens_per_second": "computed",
    "bubble_ratio": "bubble_ratio",
    "gpu_utilization": "utilization",
    "peak_gigabytes": "peak_gigabytes",
    "held_gigabytes": "held_gigabytes",
    "error": "error",
    "command": "command",
}


def plan_from(policy: str, command: str, row: dict) -> Plan:
    """Of a row that `braid compare --json` prints."""
    if "error" in row:
        return Plan(policy, command, error=row["error"])
    predicted, bound = row["predicted"], row["lower_bound"]
    busy = predicted["stage_busy_share"]
    return Plan(
        policy,
        command,
        deployment=row["deployment"],
        microbatches=row.get("microbatches"),
        htasks=row["htasks"],
        step_seconds=predicted["step_seconds"],
        bound_seconds=bound["step_seconds"],
        bound_by=bound["binds"],
        effective=predicted["effective_tokens_per_second"],
        computed=predicted["tokens_per_second"],
        data=predicted["data_tokens_per_second"],
        bubble_ratio=predicted["bubble_ratio"],
        busy_share=sum(busy) / len(busy),
        utilization=predicted["gpu_utilization"],
        busiest_share=max(busy),
        peak_gigabytes=max(predicted["peak_memory_bytes"]) / 1e9,
        planning_seconds=row["planning_seconds"],
        held_gigabytes=max(predicted["held_memory_bytes"]) / 1e9,
    )


def fastest(plans: list[Plan]) -> Plan:
    """Of several that may have failed; the first where none is left."""
    return max(plans, key=lambda plan: plan.effective or 0)


def ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above and below else None


def commands(*plans: Plan) -> str:
    return "; ".join(plan.command for plan in plans)


def over(ours: Plan, baseline: Plan, measure: str = "effective") -> tuple[float | None, str]:
    """How many times as much of a measure the first has, and the commands that say so."""
    return ratio(getattr(ours, measure), getattr(baseline, measure)), commands(ours, baseline)


def saved(ours: Plan, baseline: Plan, measure: str = "step_seconds") -> tuple[float | None, str]:
    """The part of the baseline's that the first saves, and the commands that say so."""
    part, told = over(ours, baseline, measure)
    return None if part is None else 1 - part, told
