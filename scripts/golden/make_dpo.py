#!/usr/bin/env python3
"""Writes tests/golden/dpo: pairs, and what TRL's DPOTrainer makes of them on the golden backbone `llama` with its
adapter, which is also the reference.

    pip install -r scripts/golden/requirements_dpo.txt
    python scripts/golden/make_dpo.py

pairs.jsonl holds rows of prompt_ids, chosen_ids and rejected_ids; trained.json the loss, the mean margin of the rewards
and the share of pairs whose margin is above 0, before each step of AdamW over all pairs at once.
"""

import json
import random
import tempfile
from pathlib import Path

import torch
from datasets import Dataset
from peft import PeftModel
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from tokenizers import Tokenizer, models
from trl import DPOConfig, DPOTrainer

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"
PAIRS, STEPS, BETA, RATE = 6, 8, 0.3, 1e-3


def rows(vocabulary: int) -> list[dict]:
    draw = random.Random(17)
    ids = lambda least, most: [draw.randrange(vocabulary) for _ in range(draw.randrange(least, most))]
    return [{"prompt_ids": ids(2, 9), "chosen_ids": ids(3, 20), "rejected_ids": ids(3, 20)} for _ in range(PAIRS)]


def tokenizer() -> PreTrainedTokenizerFast:
    words = {"<pad>": 0, "<eos>": 1}
    made = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<pad>")


class Given(DPOTrainer):
    """Takes rows that are tokenized as they stand."""

    def _prepare_dataset(self, dataset, *arguments, **named):
        return dataset


def main() -> None:
    torch.manual_seed(0)
    base = AutoModelForCausalLM.from_pretrained(GOLDEN / "llama", dtype=torch.float32, attn_implementation="eager")
    model = PeftModel.from_pretrained(base, GOLDEN / "llama" / "adapter", is_trainable=True)
    pairs = rows(base.config.vocab_size)
    with tempfile.TemporaryDirectory() as folder:
        config = DPOConfig(
            output_dir=folder, beta=BETA, loss_type=["sigmoid"],
            per_device_train_batch_size=PAIRS, num_train_epochs=STEPS, learning_rate=RATE,
            lr_scheduler_type="constant", weight_decay=0.0, max_grad_norm=0.0, logging_steps=1, max_length=None,
            bf16=False, use_cpu=True, report_to=[], save_strategy="no", gradient_checkpointing=False,
            disable_dropout=True, disable_tqdm=True, seed=1,
        )  # fmt: skip
        trainer = Given(model=model, args=config, train_dataset=Dataset.from_list(pairs), processing_class=tokenizer())
        trainer.train()
        logs = [line for line in trainer.state.log_history if "loss" in line]
    folder = GOLDEN / "dpo"
    folder.mkdir(exist_ok=True)
    (folder / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    trained = {
        "beta": BETA,
        "lr": RATE,
        "loss": [line["loss"] for line in logs],
        "margin": [line["rewards/margins"] for line in logs],
        "accuracy": [line["rewards/accuracies"] for line in logs],
    }
    (folder / "trained.json").write_text(json.dumps(trained, indent=1) + "\n")


if __name__ == "__main__":
    main()
