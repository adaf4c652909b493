"""What MuxTune section 5.1 and table 2 fix, and what is assumed where they are silent (results/muxtune/README.md)."""

from dataclasses import dataclass

from .. import Braid, Dataset, Link, Plan, commands, saved

# Mean and deviation of the data are assumed; padding to max_length makes the computed tokens independent of them.
SST2 = Dataset("sst2", 64, 25, 0.5)
QA = Dataset("qa", 128, 60, 0.4)
RTE = Dataset("rte", 256, 80, 0.6)

WORKLOADS = {
    "WL-A": [SST2, QA, QA, SST2, SST2, SST2, QA, QA],
    "WL-B": [RTE, SST2, RTE, SST2, SST2, RTE, RTE, RTE],
}
WL_BATCHES = [4, 2, 4, 4, 8, 2, 4, 4]
LOADS = {"light": WORKLOADS["WL-A"], "heavy": WORKLOADS["WL-B"]}

MICROBATCH_SAMPLES = 8
HF_PEFT, SL_PEFT, MUXTUNE = "hf-peft:resident=false", "sl-peft", "muxtune"
# 1F1B, as figure 19(b) and appendix A tell; what interleaved stages change is in varied.csv.
NEMO, NEMO_INTERLEAVED = "nemo:resident=false:schedule=1f1b", "nemo:resident=false"
NEMO_RESIDENT = "nemo:schedule=1f1b"
UNFUSED = f"{MUXTUNE}:fusion=off"
ORCHESTRATED = f"{UNFUSED}:alignment=zero"


@dataclass(frozen=True)
class Load:
    """Tasks, by dataset and global batch size."""

    name: str
    tasks: list[tuple[Dataset, int]]

    def write(self, braid: Braid, backbone: str) -> str:
        return braid.workload(f"{backbone}-{self.name}", backbone, self.tasks)


def mixed(datasets: list[Dataset], tasks: int, batch: int) -> Load:
    """The datasets in turn, each task with the same global batch."""
    name = "-".join(dataset.name for dataset in datasets)
    each = [(datasets[index % len(datasets)], batch) for index in range(tasks)]
    return Load(f"{tasks}x{name}-batch{batch}", each)


def table_2(name: str, tasks: int) -> Load:
    """The first tasks of a workload of table 2, repeated, with its batch sizes."""
    return Load(f"{name}-{tasks}", [(WORKLOADS[name][index % 8], WL_BATCHES[index % 8]) for index in range(tasks)])


def figure_16_load(name: str, batch: int) -> Load:
    return Load(f"{name}-batch{batch}", [(dataset, batch) for dataset in LOADS[name]])


def microbatches(batch: int) -> int:
    return max(1, batch // MICROBATCH_SAMPLES)


@dataclass(frozen=True)
class Setup:
    """A backbone on the GPUs of table 1, cut as section 5.1 says."""

    backbone: str
    nodes: int
    gpus_per_node: int
    tp: int
    pp: int
    gpu: str = "a40"
    link: Link = "nvlink"

    @property
    def gpus(self) -> int:
        return self.nodes * self.gpus_per_node

    def cluster(self, braid: Braid) -> str:
        return braid.cluster(self.gpu, self.nodes, self.gpus_per_node, self.link, "ib-100g")

    def compare(self, braid: Braid, load: Load, policies: list[str], microbatches: int | None, **flags) -> list[Plan]:
        """Without a number of microbatches, with each policy's best."""
        flags = {"microbatches": microbatches, **flags, "tp": self.tp, "pp": self.pp}
        return braid.compare(load.write(braid, self.backbone), self.cluster(braid), policies, **flags)


GPT_2_7B = Setup("gpt3-2.7b", 1, 2, 2, 1)
LLAMA_7B = Setup("llama2-7b", 1, 4, 1, 4)
LLAMA_7B_16 = Setup("llama2-7b", 8, 2, 2, 8)
LLAMA_13B = Setup("llama2-13b", 4, 2, 2, 4)
LLAMA_13B_ONE_NODE = Setup("llama2-13b", 1, 8, 2, 4)
OPT_30B = Setup("opt-30b", 8, 2, 2, 8)
# Tensor parallelism alone, of figures 18 and 19(a).
FOUR_GPU_TENSOR = Setup("llama2-7b", 1, 4, 4, 1)
TWO_GPU_TENSOR = Setup("llama2-7b", 1, 2, 2, 1)


def lost(whole: Plan, without: Plan) -> tuple[float | None, str]:
    """Of the throughput, without a part of MuxTune; and the commands that say so."""
    return saved(without, whole, "effective")[0], commands(whole, without)
