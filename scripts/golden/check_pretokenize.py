#!/usr/bin/env python3
"""Holds scripts/pretokenize.py to tests/workload/text/rows.json and chats.json, which tests hold braid to: the same rows
give the same tokens and the same loss, or are refused in the same words. The tokenizer is the one of bytes that `braid
init` writes, as Hugging Face has it; for chats.json, which names chat templates, two line breaks are one token.

    python scripts/golden/check_pretokenize.py
"""

import io
import json
import sys
import tempfile
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from dataset_rows import NOT_SUPERVISED, InputError, RowReader  # noqa: E402
from pretokenize import Example, Limit, convert  # noqa: E402

SPECIAL = ("<bos>", "<eos>", "<|im_start|>", "<|im_end|>")
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def byte_letters() -> list[str]:
    """The letter that byte-level vocabularies write for each byte: itself where it can be seen, else one from U+0100 on."""
    seen = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in seen]
    return [chr(byte) if byte in seen else chr(256 + hidden.index(byte)) for byte in range(256)]


def byte_tokenizer(merges: list[tuple[str, str]]) -> PreTrainedTokenizerFast:
    vocabulary = {letter: byte for byte, letter in enumerate(byte_letters())}
    tokenizer = Tokenizer(models.BPE(vocabulary | {a + b: 256 + i for i, (a, b) in enumerate(merges)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 256 + len(merges))]),
        ]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<bos>", eos_token="<eos>", chat_template=CHATML
    )


def runs_of(tokenizer, example: Example) -> list[tuple[str, int]]:
    """Runs of text with 1 where the loss is taken of it."""
    runs: list[tuple[bytes, int]] = []
    weights = example.weights or [1] * len(example.labels)
    for token, label, weight in zip(example.input_ids, example.labels, weights, strict=True):
        learned = weight if label != NOT_SUPERVISED else 0
        assert label in (token, NOT_SUPERVISED)
        letters = tokenizer.convert_ids_to_tokens(token)
        text = letters.encode() if letters in SPECIAL else bytes(byte_letters().index(letter) for letter in letters)
        if runs and runs[-1][1] == learned:
            text = runs.pop()[0] + text
        runs.append((text, learned))
    return [(text.decode("utf-8"), learned) for text, learned in runs]


def runs_of_line(tokenizer, row: dict) -> list[list]:
    if "chosen_ids" not in row:
        return [list(run) for run in runs_of(tokenizer, Example(**row))]
    chosen, rejected = (
        [list(run) for run in runs_of(tokenizer, Example(row[f"{which}_ids"], row[f"{which}_labels"]))]
        for which in ("chosen", "rejected")
    )
    return [*chosen, ["", "|"], *rejected]


def outcome_of(tokenizer, case: dict, folder: Path) -> dict:
    """What the script makes of the case's file, as the table writes it."""
    file = folder / "rows.jsonl"
    file.write_bytes(case["file"].encode("latin-1" if case.get("bytes") else "utf-8"))
    limit = Limit(case.get("max_length", 512), case.get("on_too_long", "error"))
    reader, output = RowReader(file, case.get("objective") == "dpo"), io.StringIO()
    try:
        totals = convert(tokenizer, file, output, limit, reader)
    except InputError as failure:
        return {"error": str(failure).removeprefix(f"{file}:")}
    samples = [runs_of_line(tokenizer, json.loads(line)) for line in output.getvalue().splitlines()]
    counts = {"dropped": totals.dropped, "truncated": totals.cut, "emptied": totals.emptied}
    return {"samples": samples, "unread": reader.unread, "preferred": reader.preferred} | counts


def agrees(outcome: dict, case: dict) -> bool:
    if "error" in case or "error" in outcome:
        return "error" in case and outcome.get("error", "").startswith(case["error"])
    nothing = {"unread": [], "preferred": [], "dropped": 0, "truncated": 0, "emptied": 0}
    return all(outcome[key] == case.get(key, otherwise) for key, otherwise in nothing.items()) and outcome[
        "samples"
    ] == case.get("samples")


def template_of(case: dict) -> str:
    """Of a case of chats.json: the text itself, or the name of a golden one."""
    file = ROOT / "tests/golden/chat_templates" / (case["template"] + ".jinja")
    return case["template"] if "{" in case["template"] else file.read_text(encoding="utf-8")


def main() -> int:
    differing = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for table, merges in (("rows.json", []), ("chats.json", [("\u010a", "\u010a")])):
            tokenizer = byte_tokenizer(merges)
            for case in json.loads((ROOT / "tests/workload/text" / table).read_text(encoding="utf-8")):
                if "template" in case:
                    tokenizer.chat_template = template_of(case)
                outcome = outcome_of(tokenizer, case, Path(folder))
                count += 1
                if not agrees(outcome, case):
                    differing += 1
                    print(f"{case['name']}: {json.dumps(outcome)}")
    print(f"{count - differing} of {count} cases agree")
    return 1 if differing or not count else 0


if __name__ == "__main__":
    sys.exit(main())
