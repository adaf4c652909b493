"""Figure 21(a): n tasks on n GPUs, on one instance of all or on instances of four GPUs side by side."""

from .. import Braid, Panel, Report, Series, over
from .settings import LLAMA_7B, LLAMA_7B_16, MUXTUNE, NEMO, QA, SL_PEFT, Setup, microbatches, mixed

BATCH = 128
SETUPS = [Setup("llama2-7b", 1, 1, 1, 1), Setup("llama2-7b", 1, 2, 2, 1), LLAMA_7B, Setup("llama2-7b", 4, 2, 2, 4)]
SETUPS += [LLAMA_7B_16]
INSTANCE = LLAMA_7B.gpus  # of those side by side
POLICIES = {"NeMo": NEMO, "SL-PEFT": SL_PEFT, "MuxTune": MUXTUNE}
UP_ONLY, UP_THEN_OUT = 1.61, 1.28  # MuxTune over NeMo


def make(braid: Braid, report: Report) -> None:
    figure = report.figure("21a")
    found = {
        setup.gpus: setup.compare(braid, mixed([QA], setup.gpus, BATCH), list(POLICIES.values()), microbatches(BATCH))
        for setup in SETUPS
    }
    gains = {gpus: over(plans[2], plans[0])[0] for gpus, plans in found.items()}
    best = max(gains, key=lambda gpus: gains[gpus] or 0)
    figure.claim(f"up-only over NeMo ({best} GPUs)", UP_ONLY, gains[best], found[best][2].command)
    figure.claim("up-then-out over NeMo", UP_THEN_OUT, gains[INSTANCE], found[INSTANCE][2].command)
    figure.plans(["gpus"], [([gpus], plan) for gpus, plans in found.items() for plan in plans])
    series = []
    for index, name in enumerate(POLICIES):
        up = {gpus: plans[index] for gpus, plans in found.items()}
        out = [(up[min(gpus, INSTANCE)], max(1, gpus // INSTANCE)) for gpus in found]
        for way, scaled in (("up", [(plan, 1) for plan in up.values()]), ("up-then-out", out)):
            values, bounds = (
                [getattr(plan, measure) * instances for plan, instances in scaled]
                for measure in ("effective", "effective_bound")
            )
            series.append(Series(f"{name}-{way}", values, bounds))
    panel = Panel("llama2-7b, QA, batch 128, n tasks", "effective tokens/s", list(found), series, lines=True)
    see = "From eight GPUs on several instances serve more than one large one"
    figure.picture("MuxTune figure 21(a): scaling", [panel], see=see)
