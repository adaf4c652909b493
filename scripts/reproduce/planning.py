"""Workloads, clusters and profiles of the papers, and what `braid compare` predicts for them."""

import json
import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path


PAPERS_COMMAND = ["braid", "profile", "--papers", "--json"]


@dataclass(frozen=True)
class Dataset:
    """Samples are billed as `max_length` tokens; `mean` and `sigma` say how much of that is data."""

    name: str
    max_length: int
    mean: float
    sigma: float


@dataclass(frozen=True)
class Plan:
    """One policy's prediction; where there is none, `error` says why and every number is None."""

    policy: str
    command: str
    error: str = ""
    deployment: str = ""
    microbatches: int | None = None
    htasks: int | None = None
    step_seconds: float | None = None
    bound_seconds: float | None = None  # no step of this plan's work can be shorter
    bound_by: str = ""
    effective: float | None = None  # billed tokens a second
    computed: float | None = None
    bubble_ratio: float | None = None
    busy_share: float | None = None  # of the compute stream without the collectives it waits for, mean over the stages
    utilization: float | None = None  # achieved / peak FLOP rate
    busiest_share: float | None = None  # the same of the busiest stage
    peak_gigabytes: float | None = None  # of the fullest rank
    held_gigabytes: float | None = None  # of the rank that holds most: no order of the work needs less

    @property
    def effective_bound(self) -> float | None:
        """Billed tokens a second were a step to take no longer than its proven lower bound."""
        return self.effective * self.step_seconds / self.bound_seconds if self.effective else None

    @property
    def computed_bound(self) -> float | None:
        return self.computed * self.step_seconds / self.bound_seconds if self.computed else None

    @property
    def bubble_bound(self) -> float | None:
        """The bubble ratio were a step of the same work to take no longer than its proven lower bound."""
        if self.bubble_ratio is None:
            return None
        return max(0, 1 - (1 - self.bubble_ratio) * self.step_seconds / self.bound_seconds)


class Planner:
    """Writes inputs into `folder` and runs `braid` there."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.program = str(Path(os.environ["BRAID"]).resolve())
        folder.mkdir(parents=True, exist_ok=True)

    def _write(self, name: str, content: dict) -> str:
        (self.folder / name).write_text(json.dumps(content, indent=1) + "\n")  # JSON is YAML
        return name

    def workload(self, name: str, backbone: str, tasks: list[tuple[Dataset, int]]) -> str:
        """`tasks`: dataset and global batch size of each."""
        return self._write(
            f"{name}.yaml",
            {
                "backbone": backbone,
                "tasks": [
                    {
                        "name": f"{dataset.name}-{index}",
                        "dataset": {
                            "lengths": {
                                "dist": "lognormal",
                                "mean": dataset.mean,
                                "sigma": dataset.sigma,
                                "max": dataset.max_length,
                            }
                        },
                        "max_length": dataset.max_length,
                        "on_too_long": "truncate",
                        "adapter": {
                            "type": "lora",
                            "r": 16,
                            "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"],
                        },
                        "global_batch_size": batch,
                        "steps": 100,
                    }
                    for index, (dataset, batch) in enumerate(tasks)
                ],
            },
        )

    def cluster(self, gpu: str, nodes: int, gpus_per_node: int, intra_node: str | dict, inter_node: str) -> str:
        """Links by name or as bandwidth_gbs and latency_us."""
        content = {"gpu": gpu, "nodes": nodes, "gpus_per_node": gpus_per_node}
        name = f"{gpu}-{nodes}x{gpus_per_node}"
        if gpus_per_node > 1:
            content["intra_node"] = intra_node
            name += f"-{_link_name(intra_node)}"
        if nodes > 1:
            content["inter_node"] = inter_node
            name += f"-{inter_node}"
        return self._write(f"{name}.yaml", content)

    def profile(self, gpu: str, dtype: str, name: str = "", **changed) -> str:
        """The derived profile of a GPU, with `changed` fields put in the place of what was derived."""
        file = f"{name or f'{gpu}-{dtype}'}.json"
        words = ["profile", "--analytic", gpu, "--dtype", dtype, "--out", file, "--overwrite"]
        subprocess.run([self.program, *words], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        profile = json.loads((self.folder / file).read_text())
        profile.update(changed)
        return self._write(file, profile)

    def compare(self, workload: str, cluster: str, policies: list[str], **flags) -> list[Plan]:
        """Flags that are None are left out, so that the planner searches them."""
        inputs = ["compare", "--workload", workload, "--cluster", cluster]
        rest = [word for flag, value in flags.items() if value is not None for word in (f"--{flag}", str(value))]
        words = [*inputs, "--policy", ",".join(policies), *rest, "--json"]
        run = subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, text=True)
        if not run.stdout:
            raise SystemExit(f"{shlex.join(['braid', *words])}\n{run.stderr}")
        rows = json.loads(run.stdout.replace(f"{self.folder.resolve()}/", ""))["policies"]
        return [
            _plan(policy, shlex.join(["braid", *inputs, "--policy", policy, *rest]), row)
            for policy, row in zip(policies, rows, strict=True)
        ]

    def link(self, workload: str, cluster: str) -> dict:
        """Bandwidth and latency between the GPUs of a node, as plans take them."""
        words = ["plan", "--workload", workload, "--cluster", cluster, "--policy", "mlora", "--json"]
        run = subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, text=True, check=True)
        return json.loads(run.stdout)["cluster"]["intra_node"]

    def papers(self) -> dict:
        """What `braid profile --papers` says of operators, kernels and memory."""
        run = subprocess.run(PAPERS_COMMAND, executable=self.program, capture_output=True, text=True, check=True)
        return json.loads(run.stdout)

    def backbone(self, name: str, config: dict) -> str:
        """A folder as Hugging Face has it, with a shape and no weights."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        return name

    def compare_one(self, workload: str, cluster: str, policy: str, **flags) -> Plan:
        return self.compare(workload, cluster, [policy], **flags)[0]


def _link_name(link: str | dict) -> str:
    return link if isinstance(link, str) else f"{link['bandwidth_gbs']:g}gbs-{link['latency_us']:g}us"


def _plan(policy: str, command: str, row: dict) -> Plan:
    if "error" in row:
        return Plan(policy, command, error=row["error"])
    predicted = row["predicted"]
    busy = predicted["stage_busy_share"]
    return Plan(
        policy,
        command,
        deployment=row["deployment"],
        microbatches=row["microbatches"],
        htasks=row["htasks"],
        step_seconds=predicted["step_seconds"],
        bound_seconds=row["lower_bound"]["step_seconds"],
        bound_by=row["lower_bound"]["binds"],
        effective=predicted["effective_tokens_per_second"],
        computed=predicted["tokens_per_second"],
        bubble_ratio=predicted["bubble_ratio"],
        busy_share=sum(busy) / len(busy),
        utilization=predicted["gpu_utilization"],
        busiest_share=max(busy),
        peak_gigabytes=max(predicted["peak_memory_bytes"]) / 1e9,
        held_gigabytes=max(predicted["held_memory_bytes"]) / 1e9,
    )


def fastest(plans: list[Plan]) -> Plan:
    """Of several that may have failed; the first where none is left."""
    return max(plans, key=lambda plan: plan.effective or 0)


def ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above and below else None
