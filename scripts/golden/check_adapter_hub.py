#!/usr/bin/env python3
"""Tells whether a bottleneck adapter that braid wrote means to AdapterHub's library what it means to braid.

    python scripts/golden/check_adapter_hub.py --backbone DIR --adapter DIR --logits FILE.safetensors

As check_adapter.py does with PEFT. The library loads the adapter; its modules stand behind transformers' own attention
and feed-forward layers, as the library's copies of these attend without a causal mask. Needs what
scripts/golden/requirements_hub.txt lists. Exit status: 0 the logits agree to 1e-4; 1 they do not.
"""

import argparse
import math
import os
import sys
from pathlib import Path

os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1")

import adapters
import torch
import transformers
from safetensors.torch import load_file

TOLERANCE = 1e-4


def behind(adapter: torch.nn.Module):
    return lambda module, inputs, output: adapter(output, residual_input=output)[0]


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare an adapter's logits with what AdapterHub's library computes.")
    parser.add_argument("--backbone", type=Path, required=True, metavar="DIR")
    parser.add_argument("--adapter", type=Path, required=True, metavar="DIR")
    parser.add_argument("--logits", type=Path, required=True, metavar="FILE.safetensors")
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    probe = load_file(arguments.logits)
    load = transformers.AutoModelForCausalLM.from_pretrained
    model, plain = (load(arguments.backbone, attn_implementation="eager").eval() for _ in range(2))
    adapters.init(model)
    name = model.load_adapter(str(arguments.adapter), use_safetensors=True)
    model.eval()
    expected = {key for key, _ in model.named_parameters() if f".adapters.{name}." in key}
    found = load_file(arguments.adapter / "adapter.safetensors").keys()
    if expected != found:
        print(f"missing {sorted(expected - found)}, unknown {sorted(found - expected)}")
        return 1
    for layer, adapted in zip(plain.model.layers, model.model.layers, strict=True):
        layer.self_attn.o_proj.register_forward_hook(behind(adapted.attention_adapters.adapters[name]))
        layer.mlp.register_forward_hook(behind(adapted.output_adapters.adapters[name]))
    with torch.no_grad():
        logits = plain(input_ids=probe["input_ids"].long()).logits
    difference = ((probe["logits"] - logits).abs().max() / logits.abs().max()).item()
    print(f"largest relative difference {difference:.3g}, tolerance {TOLERANCE:.0e}")
    return 0 if math.isfinite(difference) and difference <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
