#!/usr/bin/env python3
"""Writes the golden files of backbones as transformers 5 saves them.

    python3 -m venv /tmp/golden-5-venv
    /tmp/golden-5-venv/bin/pip install -r scripts/golden/requirements_5.txt
    /tmp/golden-5-venv/bin/python scripts/golden/make_golden_5.py [--out tests/golden]

Each case is laid out as make_golden.py has it, save that there is no training run: logits, loss and gradients.
"""

import argparse
import json
from pathlib import Path

# Comes first: it sets the environment that torch reads when it is loaded.
import make_golden
import peft
import torch
import transformers
from safetensors.torch import load_file, save_file

Case = make_golden.Case
SIZES = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def case(name: str, seed: int, config, **changes) -> Case:
    settings = {
        "stored_as": torch.bfloat16,
        "shard_size": "1GB",
        "target_modules": make_golden.ATTENTION + make_golden.FEED_FORWARD,
        "use_rslora": False,
        "schedule": "constant",
    }
    return Case(name=name, seed=seed, config=config, **{**settings, **changes})


def rope(kind: str, theta: float, **more) -> dict:
    return {"rope_type": kind, "rope_theta": theta, **more}


CASES = [
    # A theta that a fall back to 10,000 would be seen against.
    case("llama_5", 11, transformers.LlamaConfig(**SIZES, rope_parameters=rope("default", 300.0))),
    case(
        "linear_rope",
        12,
        transformers.LlamaConfig(**SIZES, rope_parameters=rope("linear", 10000.0, factor=4.0)),
        stored_as=torch.float16,
    ),
    # Of the 4 frequencies the rule keeps the first, blends the second and divides the others.
    case(
        "yarn_rope",
        13,
        transformers.Qwen2Config(
            **SIZES,
            rope_parameters=rope("yarn", 500.0, factor=4.0, original_max_position_embeddings=32, beta_fast=4.0),
        ),
    ),
    case(
        "yarn_scaled",
        14,
        transformers.MistralConfig(
            **SIZES,
            sliding_window=None,
            rope_parameters=rope(
                "yarn",
                500.0,
                factor=8.0,
                original_max_position_embeddings=64,
                mscale=2.0,
                mscale_all_dim=0.5,
                beta_slow=0.5,
                truncate=False,
            ),
        ),
    ),
    # The window is just as long as the samples, and hides nothing.
    case(
        "mistral",
        15,
        transformers.MistralConfig(
            **SIZES, sliding_window=make_golden.SEQUENCE, rope_parameters=rope("default", 10000.0)
        ),
        shard_size="20KB",
    ),
    # Heads of a size that hidden / heads is not.
    case("qwen3", 16, transformers.Qwen3Config(**SIZES, head_dim=12, rope_parameters=rope("default", 1000000.0))),
    case(
        "tied_differs",
        17,
        transformers.LlamaConfig(**SIZES, tie_word_embeddings=False, rope_parameters=rope("default", 10000.0)),
        target_modules=["q_proj", "v_proj"],
    ),
    # Modules that read the same input have unlike ranks and scales; the first key that matches counts, as PEFT sorts them.
    case(
        "patterns",
        18,
        transformers.LlamaConfig(**SIZES, rope_parameters=rope("default", 10000.0)),
        stored_as=torch.float32,
        target_modules="all-linear",
        lora_settings={
            "rank_pattern": {"down_proj": 1, "k_proj": 2, "self_attn.(q|k)_proj": 6},
            "alpha_pattern": {"mlp.*": 3, "v_proj": 24},
        },
    ),
]

# Layer norms, biases throughout, learned positions, no gate. No width is a multiple of a vector's.
CASES += [
    case(
        "opt",
        19,
        transformers.OPTConfig(
            vocab_size=67,
            hidden_size=36,
            ffn_dim=54,
            num_hidden_layers=2,
            num_attention_heads=6,
            max_position_embeddings=64,
            word_embed_proj_dim=36,
            dropout=0.1,
        ),
        stored_as=torch.float16,
        target_modules=["q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2"],
    ),
    # Adapters on c_attn have one A for queries, keys and values; PEFT tells c_proj of either half apart by more of its name.
    case(
        "gpt2",
        20,
        transformers.GPT2Config(vocab_size=67, n_embd=36, n_layer=2, n_head=6, n_positions=64, n_inner=None),
        shard_size="20KB",
        target_modules=["c_attn", "c_proj", "c_fc"],
        lora_settings={"fan_in_fan_out": True, "rank_pattern": {"mlp.c_proj": 6}, "alpha_pattern": {"c_attn": 20}},
    ),
]

# Methods but LoRA, on backbones with and without biases and of fused modules; nothing is as it begins.
LLAMA = transformers.LlamaConfig(**SIZES, rope_parameters=rope("default", 10000.0))
QWEN = transformers.Qwen2Config(**SIZES, rope_parameters=rope("default", 10000.0))
GPT2 = transformers.GPT2Config(vocab_size=67, n_embd=36, n_layer=2, n_head=6, n_positions=64)
MODULES = make_golden.ATTENTION + make_golden.FEED_FORWARD
CASES += [
    case("dora", 21, QWEN, lora_settings={"use_dora": True}),
    case(
        "dora_gpt2",
        22,
        GPT2,
        target_modules=["c_attn", "c_proj"],
        lora_settings={"use_dora": True, "fan_in_fan_out": True},
    ),
    case("vera", 23, QWEN, method=peft.VeraConfig(r=5, target_modules=MODULES, init_weights=False)),
    case(
        "ia3",
        24,
        QWEN,
        target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj"],
        method=peft.IA3Config(
            target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj"],
            feedforward_modules=["down_proj"],
            init_ia3_weights=False,
        ),
    ),
    case(
        "prefix",
        25,
        LLAMA,
        target_modules=[],
        method=peft.PrefixTuningConfig(num_virtual_tokens=5, task_type="CAUSAL_LM"),
    ),
    case(
        "prefix_gpt2",
        26,
        GPT2,
        target_modules=[],
        method=peft.PrefixTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM"),
    ),
    case("shira", 27, LLAMA, method=peft.ShiraConfig(r=2, target_modules=MODULES, init_weights=False, random_seed=7)),
]


def edit_config(directory: Path, **changes) -> None:
    file = directory / "config.json"
    make_golden.write_json(file, {**json.loads(file.read_text()), **changes})


def make_case(case: Case, out: Path) -> None:
    directory = make_golden.fresh_directory(out / case.name)
    make_golden.write_backbone(case, directory)
    if case.name == "tied_differs":
        edit_config(directory, tie_word_embeddings=True)
        assert "lm_head.weight" in load_file(directory / "model.safetensors")
    make_golden.write_adapter(case, directory, directory / "adapter")
    tensors = make_golden.probe(case, directory)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, directory / "expected.safetensors")
    make_golden.write_json(directory / "expected.json", {"versions": make_golden.library_versions()})
    size = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
    print(f"{case.name}: probe loss {tensors['loss'].item():.4f}, {size} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the golden files of backbones as transformers 5 saves them.")
    parser.add_argument(
        "--out", type=Path, default=make_golden.REPOSITORY / "tests" / "golden", help="default: %(default)s"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for golden in CASES:
        make_case(golden, arguments.out)


if __name__ == "__main__":
    main()
