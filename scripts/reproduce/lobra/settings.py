"""What LobRA section 5.1 and its appendix fix, and what is assumed where they are silent (results/lobra/README.md)."""

from dataclasses import dataclass, replace

from .. import ALL_LINEAR, Braid, Dataset, Link, Plan

# The appendix's table 4: mean and skewness of the lengths, global batch and context.
DATASETS = {
    "dolly": (Dataset("dolly", 8192, 207, skewness=7.11), 256),
    "python": (Dataset("python", 16384, 269, skewness=10.01), 128),
    "evol": (Dataset("evol", 16384, 702, skewness=6.59), 128),
    "commitpack": (Dataset("commitpack", 8192, 663, skewness=0.79), 128),
    "math": (Dataset("math", 8192, 252, skewness=3.03), 128),
    "metamath": (Dataset("metamath", 4096, 236, skewness=2.56), 128),
    "numina": (Dataset("numina", 8192, 543, skewness=1.52), 256),
    "pubmed": (Dataset("pubmed", 2048, 371, skewness=0.73), 64),
    "xsum": (Dataset("xsum", 16384, 526, skewness=7.49), 128),
    "billsum": (Dataset("billsum", 16384, 3903, skewness=0.85), 32),
    "cnn": (Dataset("cnn", 8192, 947, skewness=0.89), 256),
    "meetingbank": (Dataset("meetingbank", 16384, 3622, skewness=4.35), 64),
}
SIX = ["dolly", "evol", "xsum", "commitpack", "meetingbank", "python"]
TWELVE = list(DATASETS)
FOUR = ["evol", "commitpack", "billsum", "pubmed"]  # of the study of scaling

# Llama 2 as published knows 4,096 positions; the paper trains on up to 16,384.
LLAMA = {
    "model_type": "llama",
    "vocab_size": 32000,
    "max_position_embeddings": 16384,
    "tie_word_embeddings": False,
    "rms_norm_eps": 1e-5,
}
LONG = {
    "llama2-7b": LLAMA
    | {
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
    },
    "llama2-70b": LLAMA
    | {
        "hidden_size": 8192,
        "intermediate_size": 28672,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
    },
}

# Tokens of a microbatch are benchmarked in doubling steps, as the authors' tables are.
TASK_FUSED, LOBRA = "task-fused:capacity=doubled", "lobra:capacity=doubled"


@dataclass(frozen=True)
class Setup:
    """A backbone on one of the paper's two environments. `recompute`: where memory is short, as their ranks hold a share
    of the rows between products (sequence parallelism), and braid's hold all."""

    backbone: str
    gpu: str
    nodes: int
    recompute: str
    tasks: tuple[str, ...]
    intra_node: Link
    inter_node: Link
    gpus_per_node: int = 8

    @property
    def gpus(self) -> int:
        return self.nodes * self.gpus_per_node

    def workload(self, braid: Braid, tasks: tuple[str, ...], tails: float = 1) -> str:
        """`tails`: the skewness of all lengths, times so much."""
        backbone = self.backbone
        if backbone in LONG:
            backbone = braid.backbone(f"{backbone}-16k", LONG[backbone])
        name = "-".join([self.backbone, str(len(tasks)), tasks[0]])
        drawn = [(replace(data, skewness=tails * data.skewness), batch) for data, batch in map(DATASETS.get, tasks)]
        return braid.workload(f"{name}-tails{tails:g}" if tails != 1 else name, backbone, drawn, ALL_LINEAR)

    def compare(
        self,
        braid: Braid,
        policies: list[str],
        tasks: tuple[str, ...] | None = None,
        nodes: int | None = None,
        tails: float = 1,
    ) -> list[Plan]:
        """A tenth of the memory is left free, as capacities are close to the authors' then
        (results/costmodel/capacities.txt)."""
        cluster = braid.cluster(self.gpu, nodes or self.nodes, self.gpus_per_node, self.intra_node, self.inter_node)
        workload = self.workload(braid, tasks or self.tasks, tails)
        return braid.compare(workload, cluster, policies, self.recompute, "memory")

    def gpu_seconds(self, plan: Plan) -> float | None:
        """Of a step."""
        return None if plan.step_seconds is None else plan.step_seconds * self.gpus


# Section 5.1: 600 GB/s of NVLink and 100 GB/s of InfiniBand; 400 and 200 GB/s. Both directions together for NVLink as
# vendors count; the networks are taken for 100 Gbit/s and 200 Gbit/s a GPU.
SEVEN_B = Setup("llama2-7b", "a100-40", 2, "none", tuple(SIX), "nvlink", "ib-100g")
A800_LINKS = ({"bandwidth_gbs": 200, "latency_us": 3}, {"bandwidth_gbs": 25, "latency_us": 5})
THIRTY_TWO_B = Setup("qwen2.5-32b", "a800-80", 8, "auto", tuple(TWELVE), *A800_LINKS)
SEVENTY_B = Setup("llama2-70b", "a800-80", 8, "auto", tuple(TWELVE), *A800_LINKS)
SETUPS = {"7B": SEVEN_B, "32B": THIRTY_TWO_B, "70B": SEVENTY_B}


def alone(braid: Braid, setup: Setup, policy: str) -> list[Plan]:
    """Each task by itself, with its own best deployment: what Task-Sequential and LobRA-Sequential run."""
    return [setup.compare(braid, [policy], (task,))[0] for task in setup.tasks]


def sum_of(setup: Setup, plans: list[Plan]) -> float | None:
    """GPU-seconds of a step of every task, one after another."""
    seconds = [setup.gpu_seconds(plan) for plan in plans]
    return None if None in seconds else sum(seconds)
