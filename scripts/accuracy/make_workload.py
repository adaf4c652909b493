#!/usr/bin/env python3
"""Writes one of the workloads that predictions are held against: a random backbone in Hugging Face's format, rows of
token ids, and workload.yaml. Needs nothing but Python.

usage: make_workload.py NAME FOLDER      make_workload.py --list
"""

import array
import json
import math
import os
import random
import struct
import sys

ATTENTION = "[q_proj, k_proj, v_proj, o_proj]"
QV = "[q_proj, v_proj]"
ALL = "[q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj]"


def shape(hidden, intermediate, heads, kv_heads, layers, vocabulary, tied=True):
    return dict(hidden_size=hidden, intermediate_size=intermediate, num_attention_heads=heads,
                num_key_value_heads=kv_heads, num_hidden_layers=layers, vocab_size=vocabulary,
                tie_word_embeddings=tied)


def task(mean, batch, rank=16, targets=ATTENTION, sigma=0.5, longest=None, dropout=0.0):
    longest = longest or max(16, int(mean * 2.5))
    return dict(mean=mean, batch=batch, rank=rank, targets=targets, sigma=sigma, longest=longest, dropout=dropout)


# Backbones of 15 to 400 million parameters, 1 to 12 tasks, mean lengths 40 to 700. Fixed before anything was measured.
WORKLOADS = {
    "narrow-short": (shape(256, 704, 4, 4, 20, 4096), [task(40, 32, r) for r in (4, 8, 16, 32) * 2]),
    "narrow-long": (shape(256, 704, 4, 2, 16, 8192), [task(700, 8, 8), task(300, 16, 16, QV)]),
    "deep-mixed": (shape(320, 864, 5, 5, 32, 4096),
                   [task(m, 16, r, t) for m, r, t in ((40, 8, QV), (90, 8, ALL), (200, 16, ATTENTION), (400, 4, QV))]),
    "one-task": (shape(512, 1376, 8, 8, 8, 16384), [task(250, 16, 16, ALL)]),
    "twelve-tasks": (shape(384, 1024, 6, 6, 12, 8192),
                     [task(40 + 30 * i, 8, 4 + 4 * (i % 4), (QV, ATTENTION, ALL)[i % 3]) for i in range(12)]),
    "wide-shallow": (shape(1024, 2816, 16, 8, 5, 8192), [task(120, 16, 8), task(60, 32, 32, ALL)]),
    "large-vocabulary": (shape(512, 1376, 8, 2, 6, 65536), [task(80, 16, 8, QV), task(180, 8, 8, ALL)]),
    "middle": (shape(768, 2048, 12, 12, 10, 16384), [task(m, 8, 16, ALL) for m in (60, 150, 350)]),
    "dropout": (shape(448, 1216, 7, 7, 14, 8192), [task(100, 16, 16, ALL, dropout=0.05) for _ in range(4)]),
    "largest": (shape(1024, 2816, 16, 16, 26, 32000), [task(150, 8, 16, ATTENTION), task(400, 4, 64, QV)]),
}


def write_tensors(path, shapes, seed):
    """Repeats one block of normal numbers, so that hundreds of millions take seconds."""
    generator = random.Random(seed)
    block = array.array("f", (generator.gauss(0, 0.02) for _ in range(1 << 16)))
    ones = array.array("f", [1.0]) * (1 << 16)
    header, at = {}, 0
    for name, dims in shapes.items():
        size = 4 * math.prod(dims)
        header[name] = {"dtype": "F32", "shape": list(dims), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for name, dims in shapes.items():
            numbers = (ones if name.endswith("norm.weight") else block).tobytes()
            left = 4 * math.prod(dims)
            while left > 0:
                out.write(numbers[:left])
                left -= min(left, len(numbers))


def write_backbone(folder, config):
    os.makedirs(folder)
    hidden, middle, vocabulary = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    head = hidden // config["num_attention_heads"]
    keys = config["num_key_value_heads"] * head
    with open(os.path.join(folder, "config.json"), "w") as out:
        json.dump({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu",
                   "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "max_position_embeddings": 4096, "torch_dtype": "float32",
                   "bos_token_id": 1, "eos_token_id": 2, **config}, out, indent=1)
    shapes = {"model.embed_tokens.weight": (vocabulary, hidden)}
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        shapes |= {at + "input_layernorm.weight": (hidden,), at + "post_attention_layernorm.weight": (hidden,),
                   at + "self_attn.q_proj.weight": (hidden, hidden), at + "self_attn.k_proj.weight": (keys, hidden),
                   at + "self_attn.v_proj.weight": (keys, hidden), at + "self_attn.o_proj.weight": (hidden, hidden),
                   at + "mlp.gate_proj.weight": (middle, hidden), at + "mlp.up_proj.weight": (middle, hidden),
                   at + "mlp.down_proj.weight": (hidden, middle)}
    shapes["model.norm.weight"] = (hidden,)
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (vocabulary, hidden)
    write_tensors(os.path.join(folder, "model.safetensors"), shapes, 1)


def write_rows(path, one, vocabulary, seed):
    generator = random.Random(seed)
    with open(path, "w") as out:
        for _ in range(max(64, 12 * one["batch"])):
            center = math.log(one["mean"]) - one["sigma"] ** 2 / 2
            length = min(one["longest"], max(4, round(generator.lognormvariate(center, one["sigma"]))))
            ids = [generator.randrange(3, vocabulary) for _ in range(length)]
            prompt = length // 3
            out.write(json.dumps({"input_ids": ids, "labels": [-100] * prompt + ids[prompt:]}) + "\n")


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(WORKLOADS))
        return
    if len(sys.argv) != 3 or sys.argv[1] not in WORKLOADS:
        sys.exit(__doc__)
    name, folder = sys.argv[1:]
    config, tasks = WORKLOADS[name]
    os.makedirs(folder, exist_ok=False)
    write_backbone(os.path.join(folder, "backbone"), config)
    lines = ["backbone: backbone", "tasks:"]
    for i, one in enumerate(tasks):
        write_rows(os.path.join(folder, f"task{i}.jsonl"), one, config["vocab_size"], i + 1)
        lines += [f"  - name: task{i}", f"    dataset: task{i}.jsonl", f"    max_length: {one['longest']}",
                  f"    adapter: {{type: lora, r: {one['rank']}, alpha: {2 * one['rank']}, dropout: {one['dropout']}, "
                  f"target_modules: {one['targets']}}}",
                  f"    global_batch_size: {one['batch']}", "    steps: 40", "    optimizer: {type: adamw, lr: 1e-4}"]
    with open(os.path.join(folder, "workload.yaml"), "w") as out:
        out.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
