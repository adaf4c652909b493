#!/usr/bin/env python3
"""Tells whether an adapter directory that braid wrote means to PEFT what it means to braid.

    python scripts/golden/check_adapter.py --backbone DIR --adapter DIR --logits FILE.safetensors

FILE holds `input_ids` [B, T] (int64 or int32) and `logits` [B, T, V] (f32), as braid computed them with the adapter.
PEFT loads the adapter onto the backbone, computes the logits in f32, and the largest relative difference
max |a - b| / max |b| (b being PEFT's) is printed. Needs what scripts/golden/requirements.txt lists.

Exit status: 0 they agree to 1e-4; 1 they do not, or PEFT does not find exactly the tensors it expects; 2 bad input.
"""

import argparse
import math
import os
import sys
import textwrap
from pathlib import Path

os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1")

import torch
import transformers
from peft import PeftModel, get_peft_model_state_dict
from safetensors import SafetensorError
from safetensors.torch import load_file

TOLERANCE = 1e-4


def key_differences(model: PeftModel, adapter: Path) -> list[str]:
    """PEFT only warns about tensors that are missing or unknown, and computes on without them."""
    expected = get_peft_model_state_dict(model).keys()
    found = load_file(adapter / "adapter_model.safetensors").keys()
    missing = [f"missing {key}" for key in sorted(expected - found)]
    return missing + [f"unknown {key}" for key in sorted(found - expected)]


def largest_relative_difference(actual: torch.Tensor, expected: torch.Tensor) -> float:
    return ((actual - expected).abs().max() / expected.abs().max()).item()


def check(backbone: Path, adapter: Path, logits_file: Path) -> int:
    probe = load_file(logits_file)
    for name in ("input_ids", "logits"):
        if name not in probe:
            raise ValueError(f"{logits_file} has no tensor '{name}'; write both input_ids and logits")

    model = transformers.AutoModelForCausalLM.from_pretrained(
        backbone, dtype=torch.float32, attn_implementation="eager", local_files_only=True
    )
    model = PeftModel.from_pretrained(model, adapter).eval()
    differences = key_differences(model, adapter)
    if differences:
        print("\n".join(differences))
        return 1

    with torch.no_grad():
        expected = model(input_ids=probe["input_ids"].long()).logits
    actual = probe["logits"].float()
    if actual.shape != expected.shape:
        raise ValueError(f"{logits_file}: logits are {list(actual.shape)}; PEFT computes {list(expected.shape)}")
    difference = largest_relative_difference(actual, expected)
    print(f"largest relative difference {difference:.3g}, tolerance {TOLERANCE:.0e}")
    return 0 if math.isfinite(difference) and difference <= TOLERANCE else 1


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare an adapter's logits with what PEFT computes from it.")
    parser.add_argument("--backbone", type=Path, required=True, metavar="DIR")
    parser.add_argument("--adapter", type=Path, required=True, metavar="DIR")
    parser.add_argument("--logits", type=Path, required=True, metavar="FILE.safetensors")
    arguments = parser.parse_args()
    # PEFT and transformers take a directory that is not there for a name to look up elsewhere.
    for path in (arguments.backbone / "config.json", arguments.adapter / "adapter_config.json", arguments.logits):
        if not path.is_file():
            print(f"error: {path} is not there; check the paths given", file=sys.stderr)
            return 2

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        return check(arguments.backbone, arguments.adapter, arguments.logits)
    except (OSError, ValueError, RuntimeError, TypeError, KeyError, SafetensorError) as failure:
        print("error: " + textwrap.shorten(str(failure), 300), file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
