"""Figure 20: bubbles of the pipeline, by method and number of adapters, 70B."""

from .. import Braid, Panel, Report, Series
from .settings import LORAFUSION, MLORA, MIXED, ONE_F_ONE_B, SEVENTY_B

BASELINES = {"Megatron-LM, 1F1B": (ONE_F_ONE_B, 0.4879), "mLoRA, 4 adapters": (MLORA, 0.3411)}
BY_ADAPTERS = {1: 0.4417, 2: 0.1500, 3: 0.1223, 4: 0.1109}


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("20")
    found = {}
    for name, (policy, paper) in BASELINES.items():
        found[name] = SEVENTY_B.compare(braid, [MIXED], [policy], tp=1, pp=4)[policy], paper
    for adapters, paper in BY_ADAPTERS.items():
        plan = SEVENTY_B.compare(braid, [MIXED], [LORAFUSION], adapters, tp=1, pp=4)[LORAFUSION]
        found[f"LoRAFusion, {adapters} adapter{'s' * (adapters > 1)}"] = plan, paper
    for name, (plan, paper) in found.items():
        figure.claim(name, paper, plan.bubble_ratio, plan.command)
    figure.plans(["method"], [([name], plan) for name, (plan, _) in found.items()])
    values, papers = [plan.bubble_ratio for plan, _ in found.values()], [paper for _, paper in found.values()]
    panel = Panel("70B, 4 H100s, Mixed", "bubble ratio", list(found), [Series("ours", values, paper=papers)])
    see = "From two adapters on a tenth of the pipeline is idle, half of it in 1F1B"
    figure.picture("LoRAFusion figure 20: bubbles (crosses: the paper's)", [panel], see=see)
