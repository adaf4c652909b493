"""Section 6.5: what the merge pass and the search for few microbatches are worth, 70B."""

from .. import Braid, Report, over
from .settings import DATA, LORAFUSION, SEVENTY_B

WITHOUT = {  # policy; what the paper gains by the other
    "the merge pass": (f"{LORAFUSION}:merge=off", f"{LORAFUSION}:merge=on", 1.0434),
    "the search beside greedy packing": (f"{LORAFUSION}:packing=greedy", LORAFUSION, 1.0382),
}


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("6.5", "section6.5")
    rows = []
    for data, datasets in DATA.items():
        for name, (without, policy, paper) in WITHOUT.items():
            plans = SEVENTY_B.compare(braid, datasets, [without, policy], tp=1, pp=4)
            gain, told = over(plans[policy], plans[without], "data")
            if data == "Het":
                figure.claim(f"{name}: throughput gained ({data})", paper, gain, told)
            rows += [([data, name, gain], plan) for plan in plans.values()]
    figure.plans(["data", "what_is_gained_by", "gain"], rows)
