"""What MuxTune section 5.1 and table 2 fix, and what is assumed where they are silent (results/muxtune/README.md)."""

from dataclasses import dataclass

from planning import Dataset, Plan, Planner, fastest, ratio

# Mean and deviation of the data are assumed; padding to max_length makes the computed tokens independent of them.
SST2 = Dataset("sst2", 64, 25, 0.5)
QA = Dataset("qa", 128, 60, 0.4)
RTE = Dataset("rte", 256, 80, 0.6)

WL_A = [SST2, QA, QA, SST2, SST2, SST2, QA, QA]
WL_B = [RTE, SST2, RTE, SST2, SST2, RTE, RTE, RTE]
WL_BATCHES = [4, 2, 4, 4, 8, 2, 4, 4]

MICROBATCH_SAMPLES = 8
HF_PEFT, SL_PEFT, MUXTUNE = "hf-peft:resident=false", "sl-peft", "muxtune"
# 1F1B, as figure 19(b) and appendix A tell; what interleaved stages change is in varied.csv.
NEMO, NEMO_INTERLEAVED = "nemo:resident=false:schedule=1f1b", "nemo:resident=false"
NEMO_RESIDENT = "nemo:schedule=1f1b"


@dataclass(frozen=True)
class Setup:
    """A backbone on the GPUs of table 1, cut as section 5.1 says."""

    backbone: str
    nodes: int
    gpus_per_node: int
    tp: int
    pp: int

    @property
    def gpus(self) -> int:
        return self.nodes * self.gpus_per_node

    def cluster(self, planner: Planner, gpu: str = "a40", intra_node: str | dict = "nvlink") -> str:
        return planner.cluster(gpu, self.nodes, self.gpus_per_node, intra_node, "ib-100g")

    @property
    def flags(self) -> dict:
        return {"tp": self.tp, "pp": self.pp}


GPT_2_7B = Setup("gpt3-2.7b", 1, 2, 2, 1)
LLAMA_7B = Setup("llama2-7b", 1, 4, 1, 4)
LLAMA_7B_16 = Setup("llama2-7b", 8, 2, 2, 8)
LLAMA_13B = Setup("llama2-13b", 4, 2, 2, 4)
OPT_30B = Setup("opt-30b", 8, 2, 2, 8)
LLAMA_13B_ONE_NODE = Setup("llama2-13b", 1, 8, 2, 4)


def microbatches(batch: int) -> int:
    return max(1, batch // MICROBATCH_SAMPLES)


def workload(planner: Planner, backbone: str, mix: list[Dataset], tasks: int, batch: int) -> str:
    """The datasets in turn, each task with the same global batch."""
    datasets = [mix[index % len(mix)] for index in range(tasks)]
    name = "-".join(dataset.name for dataset in mix)
    return planner.workload(f"{backbone}-{tasks}x{name}-batch{batch}", backbone, [(each, batch) for each in datasets])


def table2_workload(planner: Planner, name: str, backbone: str, datasets: list[Dataset], tasks: int) -> str:
    """The first tasks of table 2, repeated, with its batch sizes."""
    chosen = [(datasets[index % 8], WL_BATCHES[index % 8]) for index in range(tasks)]
    return planner.workload(f"{backbone}-{name}-{tasks}", backbone, chosen)


def best_hf_peft(planner: Planner, workload: str, cluster: str, count: int) -> Plan:
    """No tensor parallelism there: copies that share each batch, or layers laid over the GPUs, whichever is fastest."""
    return fastest([planner.compare_one(workload, cluster, HF_PEFT, microbatches=count)])


def over(ours: Plan, baseline: Plan) -> list:
    """How much faster, and the commands that say so."""
    return [ratio(ours.effective, baseline.effective), f"{ours.command}; {baseline.command}"]
