#!/usr/bin/env python3
"""Writes tests/golden/quantized.safetensors: a weight, and what bitsandbytes makes of it in NF4 and int8, widened again.

    /tmp/golden-5-venv/bin/pip install -r scripts/golden/requirements_5.txt
    /tmp/golden-5-venv/bin/python scripts/golden/make_golden_quantized.py

weight [24, 192], nf4 [24, 192] of blocks of 64 (QLoRA), int8 [24, 192] of rows (LLM.int8()); all f32.
"""

from pathlib import Path

import torch
from bitsandbytes import functional
from safetensors.torch import save_file

FILE = Path(__file__).resolve().parents[2] / "tests" / "golden" / "quantized.safetensors"


def main() -> None:
    weight = torch.randn(24, 192, generator=torch.Generator().manual_seed(29)) * torch.logspace(-3, 1, 24)[:, None]
    weight[5] = 0
    packed, state = functional.quantize_4bit(weight, blocksize=64, quant_type="nf4")
    numbers, statistics, _ = functional.int8_vectorwise_quant(weight)
    tensors = {
        "weight": weight,
        "nf4": functional.dequantize_4bit(packed, state).float(),
        "int8": functional.int8_vectorwise_dequant(numbers, statistics).float(),
    }
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, FILE)


if __name__ == "__main__":
    main()
