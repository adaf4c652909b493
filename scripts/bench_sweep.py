#!/usr/bin/env python3
"""A search of eight adapters for one dataset: with Hugging Face PEFT one after another, and with braid all at once, to
their ends and by successive halving. Prints seconds, the best adapter's loss on what is held out, and which it is.

    /tmp/bench-venv/bin/python scripts/bench_sweep.py [--rounds 3] [--out results/vs-peft/sweep.txt]

The same backbone, rows, steps and evaluations for all, in one process each; the venv is bench_vs_peft.py's. Seconds are of
steps and evaluations, medians over the rounds; loading and planning are none of them. Halving keeps two of the eight
after a third of the steps. `predicted` is what `braid simulate` says. Needs build/release/braid, or --braid.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench_vs_peft as peft_bench

RANKS, RATES = (4, 16), (1e-4, 3e-4, 1e-3, 3e-3)
BATCH, STEPS, RUNG, HELD_OUT = 4, 27, 9, 12
MOST_TOKENS = 1024
SYSTEMS = ("peft", "all", "halving")


def write_study(folder: Path) -> None:
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(bos_token_id=1, eos_token_id=2, **peft_bench.BACKBONES["cpu"]["llama-768"])
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder / "backbone")
    rng = random.Random(1)
    for name, rows in (("train", BATCH * STEPS), ("held", HELD_OUT)):
        with open(folder / f"{name}.jsonl", "w", encoding="utf-8") as file:
            for _ in range(rows):
                start, stride, length = rng.randrange(2000), rng.randrange(1, 4), rng.randint(48, 128)
                ids = [3 + (start + stride * place) % 2040 for place in range(length)]
                file.write(json.dumps({"input_ids": ids, "labels": ids}) + "\n")
    for system in SYSTEMS[1:]:
        search = ", search: {halving: 3, keep: 2}" if system == "halving" else ""
        (folder / f"{system}.yaml").write_text(
            "backbone: backbone\ntasks:\n"
            f"  - {{name: trial, dataset: train.jsonl, max_length: 128, global_batch_size: {BATCH}, steps: {STEPS}, "
            f"adapter: {{r: {list(RANKS)}, alpha: 32, target_modules: all-linear}}, optimizer: {{lr: {list(RATES)}}}, "
            f"evaluation: {{dataset: held.jsonl, every: {RUNG}}}{search}}}\n",
            encoding="utf-8",
        )


def rows_of(folder: Path, name: str) -> list[list[int]]:
    return [json.loads(line)["input_ids"] for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def run_peft(folder: Path) -> dict:
    import torch
    import transformers
    from peft import LoraConfig, get_peft_model

    torch.set_num_threads(os.cpu_count() or 1)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder / "backbone", dtype=torch.float32, attn_implementation="sdpa"
    )
    train, held = rows_of(folder, "train"), rows_of(folder, "held")
    seconds, losses = 0.0, {}
    for rank in RANKS:
        for rate in RATES:
            torch.manual_seed(1)
            config = LoraConfig(r=rank, lora_alpha=32, target_modules=peft_bench.LINEAR, task_type="CAUSAL_LM")
            trained = get_peft_model(model, config)
            parameters = [p for p in trained.parameters() if p.requires_grad]
            optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=0.0)
            peft_bench.loss_of(trained, train[:BATCH], MOST_TOKENS, "cpu", False)  # warms up
            best, start = float("inf"), time.perf_counter()
            for step in range(STEPS):
                optimizer.zero_grad()
                peft_bench.loss_of(trained, train[step * BATCH : (step + 1) * BATCH], MOST_TOKENS, "cpu", True)
                optimizer.step()
                if (step + 1) % RUNG == 0:
                    best = min(best, peft_bench.loss_of(trained, held, MOST_TOKENS, "cpu", False))
            seconds += time.perf_counter() - start
            losses[f"r{rank}-lr{rate:g}"] = best
            model = trained.unload()
    winner = min(losses, key=losses.get)
    return dict(seconds=seconds, loss=losses[winner], winner=winner, steps=STEPS * len(losses))


def run_braid(braid: Path, folder: Path, system: str) -> dict:
    plan, out = folder / f"{system}.json", folder / f"out-{system}"
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    if not plan.exists():
        subprocess.run(
            [braid, "plan", "--workload", folder / f"{system}.yaml", "--policy", "muxtune", "--ranks", "1",
             "--profile-budget", "30", "--quiet", "--out", plan],
            check=True, env=environment, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    told = subprocess.run([braid, "simulate", "--plan", plan, "--json"], check=True, env=environment,
                          stdout=subprocess.PIPE, text=True)  # fmt: skip
    subprocess.run([braid, "train", "--plan", plan, "--out", out, "--overwrite", "--quiet"], check=True,
                   env=environment, stdout=subprocess.DEVNULL)  # fmt: skip
    seconds, losses, steps = 0.0, {}, 0
    windows: dict[str, float] = {}
    for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        name = record["task"].removeprefix("trial-")
        if "eval_loss" in record:
            seconds += record["seconds"]
            losses[name] = min(losses.get(name, float("inf")), record["eval_loss"])
        else:
            windows[name] = windows.get(name, 0.0) + record["seconds"]
            steps += 1
    # A window's seconds are told of each of its tasks.
    seconds += max(windows.values())
    winner = min(losses, key=losses.get)
    run = json.loads(told.stdout).get("run")
    return dict(
        seconds=seconds, loss=losses[winner], winner=winner, steps=steps,
        predicted=run and run["halved_seconds"], predicted_all=run and run["seconds"],
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare a search with Hugging Face PEFT on this machine.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--braid", type=Path, default=peft_bench.BRAID)
    parser.add_argument("--out", type=Path, help="file for the table, beside stdout")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        peft = arguments.child == "peft"
        print(json.dumps(run_peft(arguments.folder) if peft else run_braid(arguments.braid, arguments.folder, arguments.child)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_study(folder)
        rounds = []
        for _ in range(arguments.rounds):
            told = {}
            for system in SYSTEMS:
                command = [sys.executable, __file__, "--child", system, "--folder", folder, "--braid", arguments.braid]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
                if done.returncode != 0:
                    raise SystemExit(f"{system} ended with {done.returncode}")
                told[system] = json.loads(done.stdout.strip().splitlines()[-1])
            rounds.append(told)
    text = [
        f"# scripts/bench_sweep.py --rounds {arguments.rounds}, {time.strftime('%Y-%m-%d')}, {peft_bench.machine('cpu')}:",
        "# eight LoRA adapters of one dataset on llama-768; seconds of steps and evaluations, medians over the rounds;",
        "# ratios medians of one round's PEFT over braid",
        f"{'system':32} {'steps':>6} {'seconds':>8} {'PEFT over it':>13} {'predicted':>10} {'best eval loss':>15}  winner",
    ]
    labels = {"peft": "PEFT, one after another", "all": "braid, all to their ends", "halving": "braid, successive halving"}
    for system in SYSTEMS:
        seconds = statistics.median(one[system]["seconds"] for one in rounds)
        ratio = statistics.median(one["peft"]["seconds"] / one[system]["seconds"] for one in rounds)
        last = rounds[-1][system]
        predicted = rounds[-1]["halving"]["predicted" if system == "halving" else "predicted_all"] if system != "peft" else None
        text.append(
            f"{labels[system]:32} {last['steps']:6} {seconds:8.1f} {ratio:12.2f}x "
            f"{'' if predicted is None else f'{predicted:.1f}':>10} {last['loss']:15.4f}  {last['winner']}"
        )
    print("\n".join(text))
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
