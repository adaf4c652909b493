#!/usr/bin/env python3
"""Writes the golden files of bottleneck adapters, as AdapterHub's library has them: tests/golden/bottleneck.

    python3 -m venv /tmp/golden-hub-venv
    /tmp/golden-hub-venv/bin/pip install -r scripts/golden/requirements_hub.txt
    /tmp/golden-hub-venv/bin/python scripts/golden/make_golden_hub.py [--out tests/golden]

Laid out as make_golden.py has its cases, without a training run.
"""

import argparse
import json
import os
import shutil
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", ATEN_CPU_CAPABILITY="default", CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1")

import adapters
import torch
import transformers
from safetensors.torch import load_file, save_file

REPOSITORY = Path(__file__).resolve().parents[2]
BATCH, SEQUENCE, NO_TARGET = 2, 37, -100
PROMPT_LENGTHS = (5, 11)
CONFIG = transformers.LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=40,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=128,
    rms_norm_eps=1e-5,
    rope_theta=10000.0,
)


def scramble(parameters, generator: torch.Generator) -> None:
    """Random numbers, wide enough that the logits spread by about one; norms around 1, biases clearly not 0."""
    with torch.no_grad():
        for name, parameter in sorted(parameters):
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(1 + 0.2 * noise if "norm" in name else (0.3 if name.endswith("bias") else 0.13) * noise)


def token_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    targets = labels[:, 1:].reshape(-1)
    predictions = logits[:, :-1].reshape(-1, logits.shape[-1])
    total = torch.nn.functional.cross_entropy(predictions, targets, ignore_index=NO_TARGET, reduction="sum")
    return total / (targets != NO_TARGET).sum()


def through(adapter: torch.nn.Module):
    return lambda module, inputs, output: adapter(output, residual_input=output)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the golden files of bottleneck adapters.")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "tests" / "golden", help="default: %(default)s")
    directory = parser.parse_args().out / "bottleneck"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(28)
    model = transformers.AutoModelForCausalLM.from_config(CONFIG, attn_implementation="eager")
    scramble(model.named_parameters(), generator)
    model.save_pretrained(directory)
    (directory / "generation_config.json").unlink(missing_ok=True)

    input_ids = torch.randint(0, CONFIG.vocab_size, (BATCH, SEQUENCE), generator=generator)
    labels = input_ids.clone()
    for row, length in enumerate(PROMPT_LENGTHS):
        labels[row, :length] = NO_TARGET
    with torch.no_grad():
        logits = model.eval()(input_ids=input_ids).logits

    adapters.init(model)
    model.add_adapter("adapter", config=adapters.DoubleSeqBnConfig(reduction_factor=4))
    trained = {name: parameter for name, parameter in model.named_parameters() if ".adapters.adapter." in name}
    scramble(trained.items(), generator)
    model.eval()
    model.save_adapter(str(directory / "adapter"), "adapter", use_safetensors=True)
    for file in (directory / "adapter").iterdir():
        if file.name not in ("adapter.safetensors", "adapter_config.json"):
            file.unlink()
    assert load_file(directory / "adapter" / "adapter.safetensors").keys() == trained.keys()
    # The library's own adapters on transformers' own layers: its copies of those attend without a causal mask here.
    plain = transformers.AutoModelForCausalLM.from_pretrained(directory, attn_implementation="eager").eval()
    for layer, adapted in zip(plain.model.layers, model.model.layers, strict=True):
        layer.self_attn.o_proj.register_forward_hook(through(adapted.attention_adapters.adapters["adapter"]))
        layer.mlp.register_forward_hook(through(adapted.output_adapters.adapters["adapter"]))
    adapter_logits = plain(input_ids=input_ids).logits
    loss = token_loss(adapter_logits, labels)
    loss.backward()
    tensors = {
        "input_ids": input_ids,
        "labels": labels,
        "logits": logits,
        "adapter_logits": adapter_logits.detach(),
        "loss": loss.detach().reshape(1),
        **{f"grad.{name}": parameter.grad for name, parameter in trained.items()},
    }
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, directory / "expected.safetensors")
    versions = {
        "torch": torch.__version__.split("+")[0],
        "transformers": transformers.__version__,
        "adapters": adapters.__version__,
    }
    (directory / "expected.json").write_text(json.dumps({"versions": versions}, indent=2) + "\n", encoding="utf-8")
    print(f"bottleneck: probe loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
