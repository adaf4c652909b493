"""What mLoRA section 4.1 fixes, and what is assumed where it is silent (results/mlora/README.md)."""

from dataclasses import dataclass

from planning import Dataset, Plan, Planner, ratio

# Every sample is padded to 512 tokens, so the computed tokens do not depend on how much of that is data.
GSM8K = Dataset("gsm8k", 512, 200, 0.4)
BATCH = 8
MLORA, ONE_F_ONE_B, FSDP, HF_PEFT = "mlora", "megatron-pp", "megatron-fsdp", "hf-peft:resident=false"
TENSOR = "nemo:resident=false"  # with one stage: Megatron's tensor parallelism, one task after another
BACKBONES = {"tinyllama-1.1b": "1.1B", "llama2-7b": "7B", "llama2-13b": "13B"}


@dataclass(frozen=True)
class Machine:
    gpu: str
    nodes: int
    gpus_per_node: int
    link: str | dict
    dtype: str = "f32"  # with int8 weights activations are recomputed too

    @property
    def gpus(self) -> int:
        return self.nodes * self.gpus_per_node

    def cluster(self, planner: Planner) -> str:
        return planner.cluster(self.gpu, self.nodes, self.gpus_per_node, self.link, self.link)


FOUR_A6000 = Machine("a6000", 1, 4, "pcie4")
FOUR_A6000_STAGED = Machine("a6000", 1, 4, "cpu-staged")
FOUR_A6000_INT8 = Machine("a6000", 1, 4, "pcie4", "int8")
EIGHT_3090 = Machine("rtx3090", 8, 1, "eth-1g")
ONE_A6000_INT8 = Machine("a6000", 1, 1, "", "int8")


def workload(planner: Planner, backbone: str, tasks: int) -> str:
    return planner.workload(f"{backbone}-{tasks}x{GSM8K.name}-batch{BATCH}", backbone, [(GSM8K, BATCH)] * tasks)


def compare(
    planner: Planner,
    machine: Machine,
    backbone: str,
    tasks: int,
    policies: list[str],
    profile: str = "",
    count: int | None = None,
) -> list[Plan]:
    """Pipelines run over all GPUs; the number of microbatches is each policy's best where it is not fixed."""
    profile = profile or planner.profile(machine.gpu, machine.dtype, recomputes=machine.dtype == "int8")
    file, cluster = workload(planner, backbone, tasks), machine.cluster(planner)
    plans = []
    for policy in policies:
        flags = {"profile": profile, "microbatches": count}
        if policy == TENSOR:
            flags |= {"tp": machine.gpus, "pp": 1}
        elif policy.split(":")[0] in (MLORA, ONE_F_ONE_B):
            flags |= {"pp": machine.gpus}
        plans.append(planner.compare_one(file, cluster, policy, **flags))
    return plans


def over(ours: Plan, baseline: Plan) -> list:
    """How much faster, and the commands that say so."""
    return [ratio(ours.effective, baseline.effective), f"{ours.command}; {baseline.command}"]
