"""What mLoRA section 4.1 fixes, and what is assumed where it is silent (results/mlora/README.md)."""

from dataclasses import dataclass

from .. import Braid, Dataset, Link, Plan

# Every sample is padded to 512 tokens, so the computed tokens do not depend on how much of that is data.
GSM8K = Dataset("gsm8k", 512, 200, 0.4)
BATCH = 8
MLORA, ONE_F_ONE_B, FSDP, HF_PEFT = "mlora", "megatron-pp", "megatron-fsdp", "hf-peft:resident=false"
TENSOR = "nemo:resident=false"  # with one stage: Megatron's tensor parallelism, one task after another
UNBATCHED, UNPRUNED = f"{MLORA}:batch=off", f"{MLORA}:pruning=off"
SHOWN = {TENSOR: "TP", FSDP: "FSDP", ONE_F_ONE_B: "1F1B", HF_PEFT: "HF-PEFT", MLORA: "mLoRA"}
BACKBONES = {"tinyllama-1.1b": "1.1B", "llama2-7b": "7B", "llama2-13b": "13B"}


@dataclass(frozen=True)
class Machine:
    gpu: str
    nodes: int
    gpus_per_node: int
    link: Link
    dtype: str = "f32"  # with int8 weights activations are recomputed too

    @property
    def gpus(self) -> int:
        return self.nodes * self.gpus_per_node

    def cluster(self, braid: Braid) -> str:
        return braid.cluster(self.gpu, self.nodes, self.gpus_per_node, self.link, self.link)

    def profile(self, braid: Braid, name: str = "", **changed) -> str:
        return braid.profile(self.gpu, self.dtype, name, **changed)

    def compare(
        self,
        braid: Braid,
        backbone: str,
        tasks: int,
        policies: list[str],
        microbatches: int | None = None,
        profile: str = "",
    ) -> list[Plan]:
        """Pipelines run over all GPUs; the number of microbatches is each policy's best where it is not fixed."""
        profile = profile or self.profile(braid)
        load, cluster = workload(braid, backbone, tasks), self.cluster(braid)
        plans = []
        for policy in policies:
            flags = {"profile": profile, "microbatches": microbatches}
            if self.dtype == "int8":
                flags["recompute"] = "full"
            if policy == TENSOR:
                flags |= {"tp": self.gpus, "pp": 1}
            elif policy.split(":")[0] in (MLORA, ONE_F_ONE_B):
                flags |= {"pp": self.gpus}
            plans += braid.compare(load, cluster, [policy], **flags)
        return plans


def workload(braid: Braid, backbone: str, tasks: int) -> str:
    return braid.workload(f"{backbone}-{tasks}x{GSM8K.name}-batch{BATCH}", backbone, [(GSM8K, BATCH)] * tasks)


FOUR_A6000 = Machine("a6000", 1, 4, "pcie4")
FOUR_A6000_STAGED = Machine("a6000", 1, 4, "cpu-staged")
FOUR_A6000_INT8 = Machine("a6000", 1, 4, "pcie4", "int8")
EIGHT_3090 = Machine("rtx3090", 8, 1, "eth-1g")
ONE_A6000_INT8 = Machine("a6000", 1, 1, "", "int8")
