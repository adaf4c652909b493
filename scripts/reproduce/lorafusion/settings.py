"""What LoRAFusion section 6.1 fixes, and what is assumed where it is silent (results/lorafusion/README.md)."""

from dataclasses import dataclass

from .. import ALL_LINEAR, Braid, Dataset, Link, Plan

# Means and deviations of the data are assumed, as figure 13 gives no numbers: words of documents and summaries, times
# 1.3 tokens a word.
CONTEXT = 4096
XSUM = Dataset("xsum", CONTEXT, 590, 0.65)
CNNDM = Dataset("cnndm", CONTEXT, 1060, 0.48)
WIKISUM = Dataset("wikisum", CONTEXT, 1870, 0.55)
MIXED = Dataset("mixed", CONTEXT, 1170, 0.75)  # samples of all three
ADAPTERS = 4
DATA = {
    "XSum": [XSUM],
    "CNNDM": [CNNDM],
    "WikiSum": [WIKISUM],
    "Mixed": [MIXED],
    "Het": [XSUM, CNNDM, WIKISUM, MIXED],
}

# Of each adapter; the paper's is between figure 5's 4 and 32. Microbatches of the baselines have figure 6's 4 samples.
BATCH, MICROBATCH = 16, 4

# The baselines pack samples without padding them.
FSDP, ONE_F_ONE_B, MLORA = "megatron-fsdp:pad_to=none", "megatron-pp:pad_to=none", "mlora:pad_to=none"
LORAFUSION = "lorafusion"
# 1F1B with replicas, which megatron-pp has not.
WITH_REPLICAS = "nemo:resident=false:schedule=1f1b:pad_to=none"
SHOWN = {
    FSDP: "Megatron-LM, FSDP",
    ONE_F_ONE_B: "Megatron-LM, PP",
    WITH_REPLICAS: "Megatron-LM, PP",
    MLORA: "mLoRA",
    LORAFUSION: "LoRAFusion",
}


@dataclass(frozen=True)
class Setup:
    backbone: str
    gpus: int
    gpu: str = "h100"
    link: Link = "nvlink"
    nodes: int = 1

    def workload(self, braid: Braid, data: list[Dataset], adapters: int, batch: int) -> str:
        tasks = [(data[index % len(data)], batch) for index in range(adapters)]
        names = "-".join(dataset.name for dataset in data)
        return braid.workload(f"{self.backbone}-{adapters}x{names}-batch{batch}", self.backbone, tasks, ALL_LINEAR)

    def compare(
        self,
        braid: Braid,
        data: list[Dataset],
        policies: list[str],
        adapters: int = ADAPTERS,
        batch: int = BATCH,
        **flags,
    ) -> dict[str, Plan]:
        """Of pipelines and FSDP the microbatches are given; LoRAFusion fills its own. What does not fit without
        recomputes as little as does."""
        workload = self.workload(braid, data, adapters, batch)
        cluster = braid.cluster(self.gpu, self.nodes, self.gpus // self.nodes, self.link, "ib-100g")
        found = {}
        for policy in policies:
            counted = None if policy.startswith("lorafusion") else batch // MICROBATCH
            asked = {"microbatches": counted, **flags}
            found[policy] = braid.compare(workload, cluster, [policy], "auto", **asked)[0]
        return found


EIGHT_B, THIRTY_TWO_B = Setup("llama3.1-8b", 1), Setup("qwen2.5-32b", 2)
SEVENTY_B = Setup("llama3.1-70b", 4)
