"""Section 3.3.2: launches of k tasks, batched and apart."""

from .. import PAPERS_COMMAND, Braid, Panel, Report, Series
from .launches import BATCHED, PEFT, SHOWN, TASKS, Launches, alpha_and_beta, launches
from .settings import BACKBONES


def panel(found: Launches, backbone: str) -> Panel:
    alpha, beta = alpha_and_beta(found, backbone)
    forms = {PEFT: [k * (alpha + beta) for k in TASKS], BATCHED: [alpha + k * beta for k in TASKS]}
    series = [
        Series(name, [found[backbone, runs, k]["launches"] for k in TASKS], paper=forms.get(runs))
        for runs, name in SHOWN.items()
    ]
    return Panel(backbone, "launches of a step of all tasks", [f"k {k}" for k in TASKS], series)


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("3.3.2", "section3.3.2")
    found, most = launches(braid), TASKS[-1]
    for backbone, short in BACKBONES.items():
        alpha, beta = alpha_and_beta(found, backbone)
        batched, apart = (found[backbone, runs, most]["launches"] for runs in (BATCHED, PEFT))
        text = f"{short}, {most} tasks: launches batched"
        figure.claim(f"{text}, over alpha + k beta", 1, batched / (alpha + most * beta), PAPERS_COMMAND)
        figure.claim(f"{text}, saved: about (k - 1) / k", (most - 1) / most, 1 - batched / apart, PAPERS_COMMAND)
    title = "mLoRA section 3.3.2: launches of k tasks (crosses: k (alpha + beta) and alpha + k beta)"
    see = "Launches are k (alpha + beta) apart and alpha + k beta batched, as the paper says"
    figure.picture(title, [panel(found, backbone) for backbone in BACKBONES], see=see)
