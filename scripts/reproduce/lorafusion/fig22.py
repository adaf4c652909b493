"""Figure 22: what kernels, pipeline and scheduler contribute, 70B."""

from .. import Braid, Panel, Report, Series, over
from .settings import DATA, LORAFUSION, MLORA, ONE_F_ONE_B, SEVENTY_B

PARTS = {  # policy, and the paper's speedup over the first
    "1F1B": (ONE_F_ONE_B, 1.0),
    "+ fused kernels": (f"{ONE_F_ONE_B}:kernels=fused", 1.13),
    "multi-LoRA, zero bubbles": (MLORA, 1.50),
    "+ fused kernels ": (f"{MLORA}:kernels=fused", 1.72),
    "scheduler": (f"{LORAFUSION}:kernels=separate", 1.57),
    "all": (f"{LORAFUSION}:kernels=fused", 2.05),
}


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("22")
    plans = SEVENTY_B.compare(braid, DATA["Het"], [policy for policy, _ in PARTS.values()], tp=1, pp=4)
    first = plans[ONE_F_ONE_B]
    gains = []
    for name, (policy, paper) in PARTS.items():
        gain, told = over(plans[policy], first, "data")
        gains.append(gain)
        if policy != ONE_F_ONE_B:
            figure.claim(f"{name.strip()} over 1F1B ({policy})", paper, gain, told)
    figure.plans(
        ["part", "over_first"],
        [([name.strip(), gain], plans[policy]) for (name, (policy, _)), gain in zip(PARTS.items(), gains)],
    )
    papers = [paper for _, paper in PARTS.values()]
    panel = Panel("70B, 4 H100s, Het", "over 1F1B", list(PARTS), [Series("ours", gains, paper=papers)])
    see = "The scheduler is worth more than the kernels"
    figure.picture("LoRAFusion figure 22: its parts (crosses: the paper's)", [panel], see=see)
