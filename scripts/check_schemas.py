#!/usr/bin/env python3
"""Holds files that braid writes against docs/schemas. usage: scripts/check_schemas.py BRAID

Makes plans of every policy, a profile, a derived one and a cluster study in an empty folder, and validates each."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema

SCHEMAS = Path(__file__).resolve().parents[1] / "docs" / "schemas"
POLICIES = (
    "hf-peft nemo megatron-fsdp megatron-pp gpipe sl-peft mlora task-fused task-sequential lobra lobra-sequential "
    "lorafusion muxtune braid"
).split()
WORKLOAD = """backbone: tinyllama-1.1b
tasks:
  - {name: short, dataset: {lengths: {dist: lognormal, mean: 60, sigma: 0.5, samples: 64}}, max_length: 128,
     adapter: {type: lora, r: 8}, global_batch_size: 8, steps: 2}
  - {name: long, dataset: {lengths: {dist: lognormal, mean: 400, sigma: 0.6, samples: 64}}, max_length: 1024,
     adapter: {type: lora, r: 8}, global_batch_size: 8, steps: 2}
"""
CLUSTER = "gpu: a100-40\nnodes: 1\ngpus_per_node: 4\nintra_node: nvlink\n"


def validator(name: str) -> jsonschema.Draft202012Validator:
    schemas = {file.name: json.loads(file.read_text()) for file in SCHEMAS.glob("*.json")}
    resolver = jsonschema.RefResolver("", schemas[name], store=schemas)
    return jsonschema.Draft202012Validator(schemas[name], resolver=resolver)


def main() -> None:
    braid = Path(sys.argv[1]).resolve()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)

        def run(*words: str) -> None:
            subprocess.run([braid, *words, "--quiet"], check=True, stdout=subprocess.DEVNULL)

        Path("workload.yaml").write_text(WORKLOAD)
        Path("cluster.yaml").write_text(CLUSTER)
        made = {}
        for policy in POLICIES:
            made[f"{policy}.json"] = "plan"
            run("plan", "--workload", "workload.yaml", "--cluster", "cluster.yaml", "--policy", policy, "--out", f"{policy}.json")
        made["a40.json"] = "profile"
        run("profile", "--analytic", "a40", "--out", "a40.json")
        made["study/summary.json"] = "summary"
        run("trace", "generate", "--jobs", "30", "--rate", "0.3", "--out", "jobs.csv")
        run("cluster", "--trace", "jobs.csv", "--gpus", "8", "--policy", "muxtune", "--seeds", "2", "--out", "study")
        for file, kind in made.items():
            for error in validator(f"{kind}.schema.json").iter_errors(json.loads(Path(file).read_text())):
                failed += 1
                print(f"{file}: {'/'.join(map(str, error.absolute_path))}: {error.message[:300]}")
    if failed:
        raise SystemExit(f"error: {failed} places are not as docs/schemas say")


if __name__ == "__main__":
    main()
