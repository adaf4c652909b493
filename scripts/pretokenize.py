#!/usr/bin/env python3
"""Turns a text dataset into token ids with a Hugging Face tokenizer.

    pip install "transformers>=4.50" "tokenizers>=0.21" "jinja2>=3.1"
    python scripts/pretokenize.py --tokenizer DIR --input data.jsonl --output tokens.jsonl [--max-length N]

Each input line is one JSON object of one of these forms; other keys are ignored, blank lines are skipped:
    {"text": "..."}                                  every token is supervised; EOS is appended
    {"prompt": "...", "completion": "..."}           the completion and the EOS appended to it are supervised
    {"messages": [{"role": "...", "content": "..."}, ...]}
                                                     laid out by the tokenizer's chat template; the assistant's turns
                                                     are supervised, including what ends a turn
Each output line is {"input_ids": [...], "labels": [...]}, equally long; a label is its position's own token (not
shifted) or -100 where nothing is supervised.

A prompt and its completion are tokenized as one text, so that the tokens are those of the running text; a token that
reaches from the prompt into the completion is supervised. BOS is there when the tokenizer puts it there.
--max-length N keeps the first N tokens of an example.

The output appears under its name only once it is complete. DIR must hold a fast tokenizer (tokenizer.json).
Exit status: 0 done; 2 an input is not usable, with one line on stderr that says where and what to do.
"""

import argparse
import json
import os
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import jinja2
from transformers import AutoTokenizer

NOT_SUPERVISED = -100
FORMS = ({"text"}, {"prompt", "completion"}, {"messages"})


class InputError(Exception):
    """Says in one line what is wrong, where, and what would be right."""


class BadExample(Exception):
    """The same for one example, by code that does not know which line it is from."""


@dataclass
class Example:
    input_ids: list[int]
    labels: list[int]


def tokenize(tokenizer, text: str, supervised: list[tuple[int, int]], add_special_tokens: bool) -> Example:
    """Supervises the tokens that end within one of the `supervised` [begin, end) character spans.

    The end decides because tokenizers leave a leading space out of a token's span but never its last character.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as failure:
        raise BadExample(f"half a surrogate pair at character {failure.start}; escape both halves") from None
    encoding = tokenizer(text, add_special_tokens=add_special_tokens, return_offsets_mapping=True)
    input_ids = list(encoding["input_ids"])
    labels = [
        token if any(begin < token_end <= end for begin, end in supervised) else NOT_SUPERVISED
        for token, (_, token_end) in zip(input_ids, encoding["offset_mapping"], strict=True)
    ]
    return Example(input_ids, labels)


def with_eos(tokenizer, example: Example) -> Example:
    """Ends the example with one supervised EOS, whether or not the tokenizer has put one there already."""
    eos = tokenizer.eos_token_id
    if example.input_ids[-1:] == [eos]:
        example.input_ids.pop()
        example.labels.pop()
    return Example(example.input_ids + [eos], example.labels + [eos])


def string_at(record: dict, key: str) -> str:
    if not isinstance(record[key], str):
        raise BadExample(f'"{key}" is not a string; give its text in quotes')
    return record[key]


def from_text(tokenizer, record: dict) -> Example:
    text = string_at(record, "text")
    example = tokenize(tokenizer, text, [(0, len(text))], add_special_tokens=True)
    return with_eos(tokenizer, example)


def from_completion(tokenizer, record: dict) -> Example:
    prompt, completion = string_at(record, "prompt"), string_at(record, "completion")
    text = prompt + completion
    example = tokenize(tokenizer, text, [(len(prompt), len(text))], add_special_tokens=True)
    return with_eos(tokenizer, example)


def checked_messages(record: dict) -> list[dict]:
    messages = record["messages"]
    if not isinstance(messages, list) or not messages:
        raise BadExample('"messages" is not a non-empty list; give [{"role": ..., "content": ...}, ...]')
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or not all(isinstance(message.get(key), str) for key in ("role", "content")):
            raise BadExample(f'message {index} lacks a string "role" or "content"; give it both')
    if messages[0]["role"] == "assistant":
        raise BadExample("the first message is the assistant's, which answers nothing; put a user message first")
    if all(message["role"] != "assistant" for message in messages):
        raise BadExample("no message has the role assistant, so nothing is supervised; add one or drop the line")
    return messages


def render(tokenizer, messages: list[dict], add_generation_prompt: bool) -> str:
    if tokenizer.chat_template is None:
        raise BadExample("the tokenizer has no chat template; add one to its directory or give prompt and completion")
    try:
        return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=add_generation_prompt)
    except (jinja2.TemplateError, TypeError, ValueError) as failure:
        raise BadExample(f"the chat template refuses the messages ({failure}); follow its order of roles") from None


def assistant_spans(tokenizer, messages: list[dict], text: str) -> list[tuple[int, int]]:
    """Character spans of the assistant's turns in `text`, the rendering of all messages.

    A turn is what the template adds to its generation prompt when the turn is appended. White space after the turn's
    end marker belongs to the layout, not to the turn: generation has stopped by then.
    """
    spans = []
    for index, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        before = render(tokenizer, messages[:index], add_generation_prompt=True)
        through = render(tokenizer, messages[: index + 1], add_generation_prompt=False).rstrip()
        if not through.startswith(before) or not text.startswith(through):
            raise BadExample(
                f"the chat template changes what precedes message {index} or the message itself as the conversation "
                "grows, so its tokens cannot be told apart; give prompt and completion instead"
            )
        spans.append((len(before), len(through)))
    return spans


def from_messages(tokenizer, record: dict) -> Example:
    messages = checked_messages(record)
    text = render(tokenizer, messages, add_generation_prompt=False)
    spans = assistant_spans(tokenizer, messages, text)
    # The template has written BOS and the like itself.
    return tokenize(tokenizer, text, spans, add_special_tokens=False)


def from_record(tokenizer, record) -> Example:
    if not isinstance(record, dict):
        raise BadExample('not a JSON object; give {"text": ...} or another of the forms that --help names')
    forms = [form for form in FORMS if form <= record.keys()]
    if len(forms) != 1:
        found = "keys of more than one form" if forms else "none of the forms' keys"
        raise BadExample(f'{found}; give either "text", or "prompt" and "completion", or "messages"')
    if "text" in forms[0]:
        return from_text(tokenizer, record)
    if "prompt" in forms[0]:
        return from_completion(tokenizer, record)
    return from_messages(tokenizer, record)


def cut(example: Example, max_length: int | None) -> Example:
    kept = Example(example.input_ids[:max_length], example.labels[:max_length])
    # The first token is never predicted, so a label there teaches nothing.
    if all(label == NOT_SUPERVISED for label in kept.labels[1:]):
        if len(kept.labels) < len(example.labels):
            raise BadExample(
                f"nothing is supervised within the first {max_length} of {len(example.labels)} tokens; "
                "raise --max-length, shorten the prompt or drop the line"
            )
        raise BadExample("nothing is supervised; give it some text or drop the line")
    return kept


def parse(line: bytes):
    try:
        return json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise BadExample("not UTF-8; convert the file to UTF-8") from None
    except json.JSONDecodeError as failure:
        raise BadExample(f"not JSON ({failure.msg} at column {failure.colno}); give one JSON object per line") from None


@dataclass
class Totals:
    examples: int = 0
    tokens: int = 0
    supervised: int = 0
    cut: int = 0


def convert(tokenizer, input_file: Path, output, max_length: int | None) -> Totals:
    totals = Totals()
    with input_file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                example = from_record(tokenizer, parse(line))
                kept = cut(example, max_length)
            except BadExample as failure:
                raise InputError(f"{input_file}:{number}: {failure}") from None
            output.write(json.dumps({"input_ids": kept.input_ids, "labels": kept.labels}, separators=(",", ":")) + "\n")
            totals.examples += 1
            totals.tokens += len(kept.input_ids)
            totals.supervised += sum(label != NOT_SUPERVISED for label in kept.labels)
            totals.cut += len(kept.input_ids) < len(example.input_ids)
    if totals.examples == 0:
        raise InputError(f"{input_file}:1: no examples; give one JSON object per line")
    return totals


def convert_to_file(tokenizer, input_file: Path, output_file: Path, max_length: int | None) -> Totals:
    # Beside the output, because a rename is only atomic within one file system.
    temporary = output_file.with_name(f"{output_file.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("x", encoding="utf-8") as output:
            totals = convert(tokenizer, input_file, output, max_length)
            output.flush()
            os.fsync(output.fileno())
        os.replace(temporary, output_file)
        return totals
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def load_tokenizer(directory: Path):
    # transformers takes a directory that is not there for a name to look up elsewhere.
    if not directory.is_dir():
        raise InputError(f"{directory} is not a directory; give the one that holds tokenizer.json")
    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
    except Exception as failure:  # it raises whatever its many loaders raise
        reason = textwrap.shorten(str(failure), 120)
        raise InputError(f"{directory}: no tokenizer loads from it ({reason}); check tokenizer_config.json") from None
    if not tokenizer.is_fast:
        raise InputError(f"{directory}: not a fast tokenizer; convert it so that it has a tokenizer.json")
    if tokenizer.eos_token_id is None:
        raise InputError(f"{directory}: the tokenizer has no EOS; set eos_token in tokenizer_config.json")
    return tokenizer


def length_limit(text: str) -> int:
    value = int(text)
    if value < 2:
        raise argparse.ArgumentTypeError("give at least 2: the first token is never predicted")
    return value


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, required=True, metavar="DIR")
    parser.add_argument("--input", type=Path, required=True, metavar="FILE.jsonl")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE.jsonl")
    parser.add_argument("--max-length", type=length_limit, metavar="N", help="keep the first N tokens of an example")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    try:
        tokenizer = load_tokenizer(arguments.tokenizer)
        totals = convert_to_file(tokenizer, arguments.input, arguments.output, arguments.max_length)
    except InputError as failure:
        message = str(failure)
    except OSError as failure:
        message = f"{failure.filename or arguments.output}: {failure.strerror}; check the path and its permissions"
    else:
        print(
            f"{arguments.output}: {totals.examples} examples, {totals.tokens} tokens, {totals.supervised} supervised, "
            f"{totals.cut} cut to --max-length"
        )
        return 0
    print("error: " + " ".join(message.split()), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
