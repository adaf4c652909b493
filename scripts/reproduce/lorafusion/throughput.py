"""Tokens a second of four adapters by backbone and data, of figures 14 and 15."""

from statistics import mean

from .. import Braid, Figure, Panel, Plan, over, ratio, series_of
from .settings import DATA, FSDP, LORAFUSION, MLORA, ONE_F_ONE_B, SHOWN, Setup

Found = dict[tuple[str, str], dict[str, Plan]]  # by backbone and data
MEASURE = "data"


def policies_of(setup: Setup) -> list[str]:
    """On one GPU there is nothing to share or to pipeline but the tasks themselves."""
    return [ONE_F_ONE_B, MLORA, LORAFUSION] if setup.gpus == 1 else [FSDP, ONE_F_ONE_B, MLORA, LORAFUSION]


def find(braid: Braid, setups: list[Setup]) -> Found:
    """Without tensor parallelism, which section 6.1 leaves out."""
    return {
        (setup.backbone, name): setup.compare(braid, data, policies_of(setup), tp=1)
        for setup in setups
        for name, data in DATA.items()
    }


def megatron(plans: dict[str, Plan]) -> Plan:
    """The faster of FSDP and the pipeline."""
    return max((plans[policy] for policy in (FSDP, ONE_F_ONE_B) if policy in plans), key=lambda plan: plan.data or 0)


def leads(found: Found, baseline, backbones: list[str]) -> dict[tuple[str, str], tuple[float, str]]:
    """LoRAFusion over what `baseline` picks of the plans."""
    told = {
        key: over(plans[LORAFUSION], baseline(plans), MEASURE) for key, plans in found.items() if key[0] in backbones
    }
    return {key: cells for key, cells in told.items() if cells[0]}


def claim(figure: Figure, text: str, paper_mean: float | None, paper_best: float | None, told: dict) -> None:
    best = max(told, key=lambda key: told[key][0])
    if paper_mean:
        figure.claim(f"{text}, mean", paper_mean, mean(value for value, _ in told.values()), told[best][1])
    if paper_best:
        figure.claim(f"{text}, best ({' '.join(best)})", paper_best, *told[best])


def draw(figure: Figure, setups: list[Setup], found: Found, title: str) -> None:
    rows = [
        ([*key, ratio(plans[LORAFUSION].data, plan.data), plan.data], plan)
        for key, plans in found.items()
        for plan in plans.values()
    ]
    figure.plans(["backbone", "data", "lorafusion_over_it", "data_tokens_per_second"], rows)
    panels = []
    for setup in setups:
        drawn = [found[setup.backbone, name] for name in DATA]
        series = [series_of(SHOWN[policy], [plans[policy] for plans in drawn], MEASURE) for policy in drawn[0]]
        panels.append(Panel(f"{setup.backbone}, {setup.gpus} x {setup.gpu}", "data tokens/s", list(DATA), series))
    figure.picture(title, panels)
