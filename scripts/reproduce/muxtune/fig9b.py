"""Figure 9(b): what batching gains on one GPU."""

from .. import Braid, Panel, Report, Series, over, ratio
from .settings import MICROBATCH_SAMPLES, MUXTUNE, NEMO, QA, SL_PEFT, mixed

# The shape of Llama-2-7B with 8 of its 32 layers, as the figure's caption says.
EIGHT_LAYERS = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 8,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
}
TIMES = [1, 2, 4, 8]
GAIN = 1.12  # of the most times


def make(braid: Braid, report: Report) -> None:
    """A microbatch of 8 sequences of 128 tokens, and so many times as much: of one task, and of as many tasks."""
    figure = report.figure("9b")
    backbone = braid.backbone("llama2-7b-8-layers", EIGHT_LAYERS)
    cluster = braid.cluster("a40", 1, 1, "", "")

    def plans(policy: str, tasks: int, samples: int):
        load = mixed([QA], tasks, samples).write(braid, backbone)
        return braid.compare(load, cluster, [policy], tp=1, pp=1, microbatches=1)[0]

    found = {
        "one task, its batch grown": [plans(NEMO, 1, MICROBATCH_SAMPLES * times) for times in TIMES],
        "as many tasks, SL-PEFT": [plans(SL_PEFT, times, MICROBATCH_SAMPLES) for times in TIMES],
        "as many tasks, MuxTune": [plans(f"{MUXTUNE}:fusion=literal", times, MICROBATCH_SAMPLES) for times in TIMES],
    }
    alone = next(iter(found.values()))[0]
    for name, grown in found.items():
        figure.claim(f"8 x 128 tokens {TIMES[-1]} times, {name}: throughput", GAIN, *over(grown[-1], alone))
    rows = [([name, times], plan) for name, grown in found.items() for times, plan in zip(TIMES, grown)]
    figure.plans(["batched", "times"], rows)
    series = [
        Series(
            name,
            [ratio(plan.effective, alone.effective) for plan in grown],
            [ratio(plan.effective_bound, alone.effective) for plan in grown],
            [None, None, None, GAIN] if grown[0] is alone else None,
        )
        for name, grown in found.items()
    ]
    panel = Panel("llama2-7b, 8 layers, times 8 x 128 tokens", "throughput over once", TIMES, series, lines=True)
    title = "MuxTune figure 9(b): batching on one A40 (thin: at the proven lower bound; cross: the paper)"
    see = "Eight times the tokens make one GPU 7 to 10 % faster: one batch nearly fills it"
    figure.picture(title, [panel], see=see)
