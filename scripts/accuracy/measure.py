#!/usr/bin/env python3
"""Holds what braid predicts of its own workloads (make_workload.py) against what it measures, each from an empty cache as
a new user's: how long the first plan takes, how the policies rank, and of each policy's plan the step and the memory.

usage: measure.py BRAID FOLDER [--workloads A,B] [--ranks 1,2] [--policies P,Q] [--budget SECONDS]

Appends a line of JSON for each plan to FOLDER/rows.jsonl; what stands there is not measured again. report.py reads it.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_workload

POLICIES = ["megatron-pp:pad_to=none", "sl-peft", "mlora:pad_to=none", "muxtune"]


def run(words, cache):
    started = time.monotonic()
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "XDG_CACHE_HOME": cache})
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}\n{done.stderr}")
    return done.stdout, done.stderr, time.monotonic() - started


def measure(arguments, name, ranks, out, known):
    folder = os.path.join(arguments.folder, name)
    if not os.path.exists(folder):
        subprocess.run([sys.executable, make_workload.__file__, name, folder], check=True)
    cache = os.path.join(arguments.folder, f"cache-{name}-{ranks}")
    plan_file = os.path.join(arguments.folder, f"plan-{name}-{ranks}.json")
    missing = [policy for policy in arguments.policies if (name, ranks, policy) not in known]
    if not missing:
        return
    shutil.rmtree(cache, ignore_errors=True)
    common = ["--workload", os.path.join(folder, "workload.yaml"), "--ranks", str(ranks)]
    _, _, first_plan = run([arguments.braid, "plan", *common, "--policy", arguments.policies[0], "--quiet"], cache)
    ranked = {}
    if len(arguments.policies) > 1:
        compared, _, _ = run([arguments.braid, "compare", *common, "--policy", ",".join(arguments.policies), "--quiet",
                              "--json"], cache)
        ranked = {row["policy"]: row for row in json.loads(compared)["policies"]}
    for policy in missing:
        row = {"workload": name, "ranks": ranks, "policy": policy, "first_plan_seconds": first_plan}
        if "predicted" in ranked.get(policy, {}):
            row["compared_step_seconds"] = ranked[policy]["predicted"]["step_seconds"]
        _, said, row["plan_seconds"] = run([arguments.braid, "plan", *common, "--policy", policy, "--out", plan_file,
                                            "--overwrite"], cache)
        row["pilot"] = next((line for line in said.splitlines() if line.startswith("pilot:")), "")
        with open(plan_file) as file:
            predicted = json.load(file)["predicted"]
        row["step_seconds"], row["extrapolated"] = predicted["step_seconds"], predicted["extrapolated_share"]
        validated, _, row["validate_seconds"] = run([arguments.braid, "validate", "--plan", plan_file, "--json",
                                                     "--quiet", "--budget", str(arguments.budget)], cache)
        comparison = json.loads(validated)
        reference = comparison["reference_pass_seconds"]
        row |= {"error": comparison["step_seconds"]["error"],
                "at_pace": comparison["step_seconds_at_profiled_pace"]["error"],
                "pace": reference["measured"] / reference["predicted"] - 1,
                "memory": [one["error"] for one in comparison["peak_memory_bytes"]]}
        out.write(json.dumps(row) + "\n")
        out.flush()
        print(f"{name} {ranks} {policy}: {row['error']:+.1%} at pace {row['at_pace']:+.1%}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("braid")
    parser.add_argument("folder")
    parser.add_argument("--workloads", type=lambda text: text.split(","), default=list(make_workload.WORKLOADS))
    parser.add_argument("--ranks", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2])
    parser.add_argument("--policies", type=lambda text: text.split(","), default=POLICIES)
    parser.add_argument("--budget", type=float, default=40)
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    rows = os.path.join(arguments.folder, "rows.jsonl")
    known = set()
    if os.path.exists(rows):
        with open(rows) as file:
            known = {(row["workload"], row["ranks"], row["policy"]) for row in map(json.loads, file)}
    with open(rows, "a") as out:
        for name in arguments.workloads:
            for ranks in arguments.ranks:
                measure(arguments, name, ranks, out, known)


if __name__ == "__main__":
    main()
