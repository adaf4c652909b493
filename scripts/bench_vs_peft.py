#!/usr/bin/env python3
"""Trains the same tasks from the same weights with braid and with Hugging Face PEFT on the same cores, in turns, and
prints tokens/s, peak memory and final losses side by side.

    python3 -m venv /tmp/bench-venv
    /tmp/bench-venv/bin/pip install -r scripts/requirements_bench.txt
    /tmp/bench-venv/bin/python scripts/bench_vs_peft.py [--rounds 3] [--out results/vs-peft/cpu.txt]

Two backbones of random weights, neither the quick start's. `one` is one LoRA task on all linear layers; `eight` are
eight of mixed lengths and ranks, which braid trains together (policy muxtune) and PEFT one after another. A round runs
every system once, each in a process of its own; figures are medians over the rounds, and ratios are of one round.
PEFT's side is its best: a global batch's rows sorted by length, in microbatches of up to 1,024 tokens, padded to the
longest of a microbatch, gradients added up, after an untimed pass. Needs build/release/braid.
"""

import argparse
import json
import os
import platform
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BRAID = ROOT / "build" / "release" / "braid"
BACKBONES = {
    "llama-768": dict(hidden_size=768, intermediate_size=2048, num_hidden_layers=6, num_attention_heads=12),
    "llama-1024": dict(hidden_size=1024, intermediate_size=2816, num_hidden_layers=5, num_attention_heads=16),
}
MICROBATCH_TOKENS = 1024
ALPHA_OVER_RANK = 2
LEARNING_RATE = 1e-3
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def tasks_of(kind: str) -> list[dict]:
    """Name, longest sample, rank, samples a step and steps."""
    if kind == "one":
        return [dict(name="t0", longest=256, rank=16, batch=16, steps=6)]
    longest, ranks = (48, 64, 96, 128, 160, 192, 256, 320), (4, 8, 8, 16, 16, 16, 32, 8)
    return [
        dict(name=f"t{i}", longest=length, rank=rank, batch=4, steps=6)
        for i, (length, rank) in enumerate(zip(longest, ranks, strict=True))
    ]


def write_study(folder: Path, backbone: str, kind: str) -> None:
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=2048,
        num_key_value_heads=4,
        max_position_embeddings=512,
        bos_token_id=1,
        eos_token_id=2,
        **BACKBONES[backbone],
    )
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder / "backbone")
    rng = random.Random(1)
    lines = ["backbone: backbone", "tasks:"]
    for task in tasks_of(kind):
        with open(folder / f"{task['name']}.jsonl", "w", encoding="utf-8") as file:
            for _ in range(task["batch"] * task["steps"]):
                start, stride = rng.randrange(2000), rng.randrange(1, 4)
                length = rng.randint(task["longest"] // 2, task["longest"])
                ids = [3 + (start + stride * place) % 2040 for place in range(length)]
                file.write(json.dumps({"input_ids": ids, "labels": ids}) + "\n")
        lines.append(
            f"  - {{name: {task['name']}, dataset: {task['name']}.jsonl, max_length: {task['longest']}, "
            f"adapter: {{r: {task['rank']}, alpha: {ALPHA_OVER_RANK * task['rank']}, target_modules: all-linear}}, "
            f"global_batch_size: {task['batch']}, steps: {task['steps']}, optimizer: {{lr: {LEARNING_RATE}}}}}"
        )
    (folder / "workload.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def samples_of(folder: Path, task: dict) -> list[list[int]]:
    with open(folder / f"{task['name']}.jsonl", encoding="utf-8") as file:
        return [json.loads(line)["input_ids"] for line in file]


def run_peft(folder: Path, kind: str) -> dict:
    """All tasks, one after another on one backbone: seconds in steps, final losses."""
    import torch
    import transformers
    from peft import LoraConfig, get_peft_model

    torch.set_num_threads(os.cpu_count() or 1)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder / "backbone", dtype=torch.float32)

    def microbatches(batch: list[list[int]]) -> list[torch.Tensor]:
        rows, groups = sorted(batch, key=len), []
        for row in rows:
            if groups and len(row) * (len(groups[-1]) + 1) <= MICROBATCH_TOKENS:
                groups[-1].append(row)
            else:
                groups.append([row])
        return groups

    def step(trained, optimizer, batch: list[list[int]]) -> float:
        total, supervised = 0.0, sum(len(row) - 1 for row in batch)
        optimizer.zero_grad()
        for group in microbatches(batch):
            longest = max(map(len, group))
            ids = torch.tensor([row + [0] * (longest - len(row)) for row in group])
            mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in group])
            labels = ids.masked_fill(mask == 0, -100)
            logits = trained(input_ids=ids, attention_mask=mask if mask.min() == 0 else None).logits
            loss = torch.nn.functional.cross_entropy(
                logits[:, :-1].reshape(-1, logits.shape[-1]),
                labels[:, 1:].reshape(-1),
                ignore_index=-100,
                reduction="sum",
            )
            (loss / supervised).backward()
            total += loss.item()
        optimizer.step()
        return total / supervised

    seconds, losses = 0.0, {}
    for task in tasks_of(kind):
        torch.manual_seed(1)
        config = LoraConfig(
            r=task["rank"], lora_alpha=ALPHA_OVER_RANK * task["rank"], target_modules=LINEAR, task_type="CAUSAL_LM"
        )
        trained = get_peft_model(model, config)
        optimizer = torch.optim.AdamW(
            [p for p in trained.parameters() if p.requires_grad], lr=LEARNING_RATE, weight_decay=0.0
        )
        samples = samples_of(folder, task)
        batches = [samples[i : i + task["batch"]] for i in range(0, len(samples), task["batch"])]
        for group in microbatches(batches[0]):  # warms up, and leaves no gradient
            trained(input_ids=torch.tensor([row[: min(map(len, group))] for row in group])).logits.sum().backward()
        start = time.perf_counter()
        for batch in batches:
            losses[task["name"]] = step(trained, optimizer, batch)
        seconds += time.perf_counter() - start
        model = trained.unload()
    return dict(seconds=seconds, losses=losses)


def run_braid(folder: Path, base_weights: str) -> dict:
    workload = folder / f"workload-{base_weights}.yaml"
    workload.write_text(
        f"base_weights: {base_weights}\n" + (folder / "workload.yaml").read_text(encoding="utf-8"), encoding="utf-8"
    )
    plan, out = folder / f"plan-{base_weights}.json", folder / f"out-{base_weights}"
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    if not plan.exists():
        subprocess.run(
            [BRAID, "plan", "--workload", workload, "--policy", "muxtune", "--ranks", "1", "--profile-budget", "30",
             "--quiet", "--out", plan],
            check=True, env=environment, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    # Its memory is its own: planning, which measures this machine, is none of it.
    train = subprocess.Popen(
        [BRAID, "train", "--plan", plan, "--out", out, "--overwrite", "--quiet"],
        env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    printed = train.stdout.read()
    _, status, usage = os.wait4(train.pid, 0)
    if status != 0:
        raise SystemExit(f"braid train ended with {os.waitstatus_to_exitcode(status)}")
    share = re.search(r"(\d+) % of the GEMM peak", printed)
    seconds: dict[str, float] = {}
    losses: dict[str, float] = {}
    for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if "loss" not in record:
            continue
        seconds[record["task"]] = seconds.get(record["task"], 0.0) + record["seconds"]
        losses[record["task"]] = record["loss"]
    return dict(
        seconds=max(seconds.values()),
        losses=losses,
        peak_share=int(share.group(1)) if share else None,
        peak_kibibytes=usage.ru_maxrss,
    )


def child(arguments: argparse.Namespace) -> None:
    """One system in a process of its own, so that its peak memory is its own; what the peak is of a child is braid's."""
    folder = Path(arguments.folder)
    if arguments.child == "peft":
        result = run_peft(folder, arguments.kind)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    else:
        result = run_braid(folder, arguments.child)
        peak = result["peak_kibibytes"]
    print(json.dumps({**result, "peak_bytes": 1024 * peak}))


def measure(folder: Path, kind: str, system: str) -> dict:
    command = [sys.executable, __file__, "--child", system, "--folder", str(folder), "--kind", kind]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare braid with Hugging Face PEFT on this machine's cores.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="file for the table, beside stdout")
    parser.add_argument("--backbones", nargs="+", choices=BACKBONES, default=list(BACKBONES))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        return child(arguments)
    if not BRAID.exists():
        parser.error(f"{BRAID} is not there; build the release preset")
    cpu = next(
        (l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.machine()
    )
    text = [
        f"# scripts/bench_vs_peft.py --rounds {arguments.rounds}, {time.strftime('%Y-%m-%d')}, {cpu}, {os.cpu_count()} cores:",
        "# tokens/s and peak MB are medians over the rounds, ratios medians of one round's braid over PEFT; of peak: the",
        "# backbone's products a second over what the best matrix product of the profile takes, measured minutes before",
        f"{'backbone':11} {'tasks':6} {'system':11} {'tokens/s':>9} {'over PEFT':>10} {'peak MB':>8} {'of peak':>8} {'mean final loss':>16}",
    ]
    print("\n".join(text))
    systems = ["peft", "f32", "bf16"]
    for backbone in arguments.backbones:
        for kind in ("one", "eight"):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                write_study(folder, backbone, kind)
                tokens = sum(len(row) for task in tasks_of(kind) for row in samples_of(folder, task))
                rounds = [
                    {system: measure(folder, kind, system) for system in systems} for _ in range(arguments.rounds)
                ]
            for system in systems:
                speed = statistics.median(tokens / one[system]["seconds"] for one in rounds)
                ratio = statistics.median(one["peft"]["seconds"] / one[system]["seconds"] for one in rounds)
                peak = statistics.median(one[system]["peak_bytes"] for one in rounds) / 1e6
                loss = statistics.mean(rounds[-1][system]["losses"].values())
                label = "PEFT" if system == "peft" else f"braid {system}"
                shares = [one[system]["peak_share"] for one in rounds if one[system].get("peak_share")]
                share = f"{statistics.median(shares):.0f} %" if shares else ""
                text.append(
                    f"{backbone:11} {kind:6} {label:11} {speed:9.0f} {ratio:9.2f}x {peak:8.0f} {share:>8} {loss:16.4f}"
                )
                print(text[-1], flush=True)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
