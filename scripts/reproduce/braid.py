"""The programs that figures are made of, run in a folder with their inputs."""

import json
import os
import shlex
import subprocess
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from .plan import Plan, plan_from

ROOT = Path(__file__).resolve().parents[2]
STUDIES = ROOT / "build" / "release"
PAPERS_COMMAND = "costmodel_study papers --json"
Link = str | dict  # by name, or as bandwidth_gbs and latency_us
Modules = str | tuple[str, ...]  # that adapters are on
ATTENTION, ALL_LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj"), "all-linear"


@dataclass(frozen=True)
class Dataset:
    """Samples are billed as `max_length` tokens; the rest says how much of that is data, lognormal: the mean, and the
    sigma of the logarithm or the skewness of the lengths."""

    name: str
    max_length: int
    mean: float
    sigma: float | None = None
    skewness: float | None = None

    @property
    def lengths(self) -> dict:
        spread = {"sigma": self.sigma} if self.skewness is None else {"skewness": self.skewness}
        return {"dist": "lognormal", "mean": self.mean, **spread, "max": self.max_length}


def _printed(program: Path, words: list[str], folder: Path, statuses: tuple[int, ...]) -> str:
    if not program.exists():
        raise SystemExit(f"error: {program} is missing; build the release preset")
    run = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, check=False)
    if run.returncode not in statuses or (run.returncode != 0 and not run.stdout):
        raise SystemExit(f"{shlex.join([program.name, *words])}\n{run.stderr.strip()}")
    return run.stdout


class Braid:
    """Writes inputs into `folder` and runs `braid` there, for several threads at a time."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.program = Path(os.environ.get("BRAID", STUDIES / "braid")).resolve()
        self._answers: dict[tuple[str, ...], Future] = {}
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)

    def run(self, *words: str) -> None:
        _printed(self.program, list(words), self.folder, (0,))

    def ask(self, *words: str, statuses: tuple[int, ...] = (0,)) -> dict:
        """What a command prints as JSON. Asked twice it is run once: a name stands for one input."""

        def answer() -> dict:
            printed = _printed(self.program, [*words, "--json"], self.folder, statuses)
            return json.loads(printed.replace(f"{self.folder.resolve()}/", ""))

        return self._once(words, answer)

    def _once(self, key: tuple[str, ...], make):
        """What `make` gives, by whichever thread asks first; the others wait for it."""
        with self._lock:
            first = key not in self._answers
            answer = self._answers.setdefault(key, Future())
        if first:
            try:
                answer.set_result(make())
            except BaseException as failure:
                answer.set_exception(failure)
        return answer.result()

    def study(self, command: str) -> str:
        """What a study of tests/studies prints."""
        name, *words = shlex.split(command)
        return _printed(STUDIES / name, words, self.folder, (0,))

    def papers(self) -> dict:
        """What papers report of operators, kernels and memory, and what the cost model says."""
        return json.loads(self.study(PAPERS_COMMAND))

    def _write(self, name: str, content: dict) -> str:
        """A name stands for one content, and whoever reads it finds it whole."""
        file = self.folder / name
        unfinished = file.with_name(f"{file.name}.{threading.get_ident()}")
        unfinished.write_text(json.dumps(content, indent=1) + "\n")  # JSON is YAML
        unfinished.replace(file)
        return name

    def workload(self, name: str, backbone: str, tasks: list[tuple[Dataset, int]], modules: Modules = ATTENTION) -> str:
        """`tasks`: dataset and global batch size of each."""

        def task(index: int, data: Dataset, batch: int) -> dict:
            return {
                "name": f"{data.name}-{index}",
                "dataset": {"lengths": data.lengths},
                "max_length": data.max_length,
                "on_too_long": "truncate",
                "adapter": {"type": "lora", "r": 16, "target_modules": modules},
                "global_batch_size": batch,
                "steps": 100,
            }

        content = {"backbone": backbone, "tasks": [task(index, *each) for index, each in enumerate(tasks)]}
        return self._write(f"{name}.yaml", content)

    def cluster(self, gpu: str, nodes: int, gpus_per_node: int, intra_node: Link, inter_node: Link) -> str:
        content = {"gpu": gpu, "nodes": nodes, "gpus_per_node": gpus_per_node}
        name = f"{gpu}-{nodes}x{gpus_per_node}"
        for key, link, used in (("intra_node", intra_node, gpus_per_node > 1), ("inter_node", inter_node, nodes > 1)):
            if used:
                content[key] = link
                name += f"-{_link_name(link)}"
        return self._write(f"{name}.yaml", content)

    def backbone(self, name: str, config: dict) -> str:
        """A folder as Hugging Face has it, with a shape and no weights."""
        (self.folder / name).mkdir(exist_ok=True)
        self._write(f"{name}/config.json", config)
        return name

    def profile(self, gpu: str, dtype: str, name: str = "", **changed) -> str:
        """The derived profile of a GPU, with `changed` fields put in the place of what was derived."""
        file = f"{name or f'{gpu}-{dtype}'}.json"

        def make() -> str:
            derived = f"derived-{file}"
            self.run("profile", "--analytic", gpu, "--dtype", dtype, "--out", derived, "--overwrite")
            return self._write(file, json.loads((self.folder / derived).read_text()) | changed)

        return self._once(("profile", file), make)

    def compare(
        self, workload: str, cluster: str, policies: list[str], recompute: str = "none", prefer: str = "speed", **flags
    ) -> list[Plan]:
        """Flags that are None are left out, so that the planner searches them. The papers' runs recompute nothing,
        unless they say so."""
        inputs = ["compare", "--prefer", prefer, "--workload", workload, "--cluster", cluster]
        rest = [word for flag, value in flags.items() if value is not None for word in (f"--{flag}", str(value))]
        # 1 and 2: some policies have no plan, which their rows say.
        spelled = [f"{policy}:recompute={recompute}" for policy in policies]
        told = self.ask(*inputs, "--policy", ",".join(spelled), *rest, statuses=(0, 1, 2))
        return [
            plan_from(policy, shlex.join(["braid", *inputs, "--policy", words, *rest]), row)
            for policy, words, row in zip(policies, spelled, told["policies"], strict=True)
        ]


def _link_name(link: Link) -> str:
    return link if isinstance(link, str) else f"{link['bandwidth_gbs']:g}gbs-{link['latency_us']:g}us"
