#!/usr/bin/env python3
"""Trains the same tasks from the same weights with braid and with Hugging Face PEFT on the same cores or the same GPU, in
turns, and prints tokens/s, peak memory and final losses side by side.

    python3 -m venv /tmp/bench-venv
    /tmp/bench-venv/bin/pip install -r scripts/requirements_bench.txt
    /tmp/bench-venv/bin/python scripts/bench_vs_peft.py [--rounds 3] [--out results/vs-peft/cpu.txt]
    python3 scripts/bench_vs_peft.py --device cuda [--out FILE]

Backbones of random weights, none the quick start's. `one` is one LoRA task on all linear layers; `eight` (on a GPU
`four`) are tasks of mixed lengths and ranks, which braid trains together (policy muxtune) and PEFT one after another. A
round runs every system once, each in a process of its own; figures are medians over the rounds, and ratios are of one
round. PEFT's side is its best: a global batch's rows sorted by length, in microbatches of up to so many tokens (of
several sizes, on a GPU, the fastest), padded to the longest of a microbatch, gradients added up, after an untimed pass;
on a GPU in bf16 with torch's fused attention, adapters in f32 as braid's are, multiplied in tf32. Needs build/release/braid, or --braid.
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
SMALL = dict(vocab_size=2048, num_key_value_heads=4, max_position_embeddings=512)
BACKBONES = {
    "cpu": {
        "llama-768": dict(hidden_size=768, intermediate_size=2048, num_hidden_layers=6, num_attention_heads=12, **SMALL),
        "llama-1024": dict(hidden_size=1024, intermediate_size=2816, num_hidden_layers=5, num_attention_heads=16, **SMALL),
    },
    # Eight layers of Llama-3.1-8B's shape; and one to try the script by.
    "cuda": {
        "llama-8b-8": dict(
            hidden_size=4096, intermediate_size=14336, num_hidden_layers=8, num_attention_heads=32,
            num_key_value_heads=8, vocab_size=32000, max_position_embeddings=4096,
        ),
        "llama-tiny": dict(
            hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, **SMALL
        ),
    },
}  # fmt: skip
KINDS = {"cpu": ("one", "eight"), "cuda": ("one", "four")}
SYSTEMS = {"cpu": ["peft", "f32", "bf16"], "cuda": ["peft", "bf16"]}
MICROBATCH_TOKENS = {"cpu": (1024,), "cuda": (2048, 4096, 8192, 16384)}
ALPHA_OVER_RANK = 2
LEARNING_RATE = 1e-3
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def torch_device(device: str) -> str:
    """A GPU, or where braid is tried with a library that acts one out, the processor."""
    return "cpu" if "BRAID_CUDA_LIBRARY" in os.environ else device


def tasks_of(kind: str, device: str) -> list[dict]:
    """Name, longest sample, rank, samples a step and steps."""
    if kind == "one":
        return [dict(name="t0", longest=256 if device == "cpu" else 2048, rank=16, batch=16, steps=6)]
    if kind == "four":
        longest, ranks = (256, 512, 1024, 2048), (8, 16, 16, 32)
        return [
            dict(name=f"t{i}", longest=length, rank=rank, batch=16, steps=4)
            for i, (length, rank) in enumerate(zip(longest, ranks, strict=True))
        ]
    longest, ranks = (48, 64, 96, 128, 160, 192, 256, 320), (4, 8, 8, 16, 16, 16, 32, 8)
    return [
        dict(name=f"t{i}", longest=length, rank=rank, batch=4, steps=6)
        for i, (length, rank) in enumerate(zip(longest, ranks, strict=True))
    ]


def write_study(folder: Path, backbone: str, kind: str, device: str) -> None:
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(bos_token_id=1, eos_token_id=2, **BACKBONES[device][backbone])
    with torch.device(torch_device(device)):
        model = transformers.AutoModelForCausalLM.from_config(config)
    if device == "cuda":
        model = model.to(torch.bfloat16)
    model.save_pretrained(folder / "backbone")
    rng = random.Random(1)
    lines = ["backbone: backbone", "tasks:"]
    for task in tasks_of(kind, device):
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


def microbatches(batch: list[list[int]], most_tokens: int) -> list[list[list[int]]]:
    rows, groups = sorted(batch, key=len), []
    for row in rows:
        if groups and len(row) * (len(groups[-1]) + 1) <= most_tokens:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def loss_of(trained, batch: list[list[int]], most_tokens: int, place: str, learns: bool) -> float:
    """Of a batch, a token; and where it learns the gradients of that."""
    import torch

    total, supervised = 0.0, sum(len(row) - 1 for row in batch)
    for group in microbatches(batch, most_tokens):
        longest = max(map(len, group))
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in group], device=place)
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in group], device=place)
        labels = ids.masked_fill(mask == 0, -100)
        with torch.set_grad_enabled(learns):
            logits = trained(input_ids=ids, attention_mask=mask if mask.min() == 0 else None).logits
            loss = torch.nn.functional.cross_entropy(
                logits[:, :-1].float().reshape(-1, logits.shape[-1]),
                labels[:, 1:].reshape(-1),
                ignore_index=-100,
                reduction="sum",
            )
        if learns:
            (loss / supervised).backward()
        total += loss.detach()
    return float(total) / supervised


def run_peft(folder: Path, kind: str, device: str) -> dict:
    """All tasks, one after another on one backbone: seconds in steps, final losses, on a GPU its peak memory."""
    import torch
    import transformers
    from peft import LoraConfig, get_peft_model

    torch.set_num_threads(os.cpu_count() or 1)
    torch.backends.cuda.matmul.allow_tf32 = True
    on_gpu, place = device == "cuda", torch_device(device)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder / "backbone", dtype=torch.bfloat16 if on_gpu else torch.float32, attn_implementation="sdpa"
    ).to(place)

    def now() -> float:
        if place == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def step(trained, optimizer, batch: list[list[int]], most_tokens: int) -> float:
        optimizer.zero_grad()
        loss = loss_of(trained, batch, most_tokens, place, True)
        optimizer.step()
        return loss

    def warm_up(trained, batch: list[list[int]], most_tokens: int) -> None:  # leaves no gradient
        for group in microbatches(batch, most_tokens):
            shortest = min(map(len, group))
            trained(input_ids=torch.tensor([row[:shortest] for row in group], device=place)).logits.sum().backward()

    def fastest(trained, optimizer, batch: list[list[int]]) -> int:
        """The tokens of a microbatch by which a step takes least; those that do not fit are left out."""
        sizes, seconds = MICROBATCH_TOKENS[device], {}
        if len(sizes) == 1:
            return sizes[0]
        kept = [p.detach().clone() for p in trained.parameters() if p.requires_grad]
        for size in sizes:
            try:
                step(trained, optimizer, batch, size)
                start = now()
                step(trained, optimizer, batch, size)
                seconds[size] = now() - start
            except torch.OutOfMemoryError:
                torch.cuda.empty_cache()
        with torch.no_grad():
            for parameter, value in zip((p for p in trained.parameters() if p.requires_grad), kept, strict=True):
                parameter.copy_(value)
        optimizer.state.clear()
        if place == "cuda":
            torch.cuda.reset_peak_memory_stats()
        return min(seconds, key=seconds.get)

    seconds, losses, peak = 0.0, {}, 0
    for task in tasks_of(kind, device):
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
        warm_up(trained, batches[0], MICROBATCH_TOKENS[device][0])
        most_tokens = fastest(trained, optimizer, batches[0])
        start = now()
        for batch in batches:
            losses[task["name"]] = step(trained, optimizer, batch, most_tokens)
        seconds += now() - start
        if place == "cuda":
            peak = max(peak, torch.cuda.max_memory_reserved())
        model = trained.unload()
    return dict(seconds=seconds, losses=losses, **(dict(peak_bytes=peak) if peak > 0 else {}))


def run_braid(braid: Path, folder: Path, base_weights: str, backend: str) -> dict:
    workload = folder / f"workload-{base_weights}.yaml"
    workload.write_text(
        f"base_weights: {base_weights}\n" + (folder / "workload.yaml").read_text(encoding="utf-8"), encoding="utf-8"
    )
    plan, out = folder / f"plan-{base_weights}.json", folder / f"out-{base_weights}"
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    if not plan.exists():
        subprocess.run(
            [braid, "plan", "--workload", workload, "--policy", "muxtune", "--ranks", "1", "--profile-budget",
             "30" if backend == "cpu" else "15", "--backend", backend, "--quiet", "--out", plan],
            check=True, env=environment, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    # Its memory is its own: planning, which measures this machine, is none of it.
    train = subprocess.Popen(
        [braid, "train", "--plan", plan, "--out", out, "--overwrite", "--quiet"],
        env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    printed = train.stdout.read()
    if train.wait() != 0:
        raise SystemExit(f"braid train ended with {train.returncode}")
    share = re.search(r"(\d+) % of the GEMM peak", printed)
    peak = re.search(r"([\d.]+) (MB|GB) of memory at most", printed)
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
        peak_bytes=float(peak.group(1)) * {"MB": 1e6, "GB": 1e9}[peak.group(2)],
    )


def child(arguments: argparse.Namespace) -> None:
    """One system in a process of its own, so that its peak memory is its own."""
    folder = Path(arguments.folder)
    if arguments.child == "peft":
        result = run_peft(folder, arguments.kind, arguments.device)
        result.setdefault("peak_bytes", 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    else:
        result = run_braid(arguments.braid, folder, arguments.child, arguments.device)
    print(json.dumps(result))


def measure(arguments: argparse.Namespace, folder: Path, kind: str, system: str) -> dict:
    command = [sys.executable, __file__, "--child", system, "--folder", folder, "--kind", kind]
    command += ["--device", arguments.device, "--braid", arguments.braid]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{system} ended with {done.returncode}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def machine(device: str) -> str:
    if device == "cuda":
        import torch

        return torch.cuda.get_device_name() if torch_device(device) == "cuda" else "a GPU that the processor acts out"
    lines = open("/proc/cpuinfo", encoding="utf-8")
    name = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{name}, {os.cpu_count()} cores"


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare braid with Hugging Face PEFT on this machine.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", choices=BACKBONES, default="cpu")
    parser.add_argument("--braid", type=Path, default=BRAID)
    parser.add_argument("--out", type=Path, help="file for the table, beside stdout")
    parser.add_argument("--backbones", nargs="+", help="left out: all of cpu, the first of cuda")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        return child(arguments)
    if not arguments.braid.exists():
        parser.error(f"{arguments.braid} is not there; build the release preset")
    device, known = arguments.device, BACKBONES[arguments.device]
    chosen = arguments.backbones or (list(known) if device == "cpu" else list(known)[:1])
    if unknown := [name for name in chosen if name not in known]:
        parser.error(f"--backbones {unknown[0]}: unknown; known: {', '.join(known)}")
    text = [
        f"# scripts/bench_vs_peft.py --device {device} --rounds {arguments.rounds}, {time.strftime('%Y-%m-%d')}, "
        f"{machine(device)}:",
        "# tokens/s and peak MB are medians over the rounds, ratios medians of one round's braid over PEFT; of peak: the",
        "# backbone's products a second over what the best matrix product of the profile takes, measured minutes before",
        f"{'backbone':11} {'tasks':6} {'system':11} {'tokens/s':>9} {'over PEFT':>10} {'peak MB':>8} {'of peak':>8} {'mean final loss':>16}",
    ]
    print("\n".join(text))
    systems = SYSTEMS[device]
    for backbone in chosen:
        for kind in KINDS[device]:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                write_study(folder, backbone, kind, device)
                tokens = sum(len(row) for task in tasks_of(kind, device) for row in samples_of(folder, task))
                rounds = [
                    {system: measure(arguments, folder, kind, system) for system in systems}
                    for _ in range(arguments.rounds)
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
