#!/usr/bin/env python3
"""Turns a dataset into token ids with a Hugging Face tokenizer, as `braid train` does with those it has built in.

    pip install "transformers>=4.50" "tokenizers>=0.21" "jinja2>=3.1"
    python scripts/pretokenize.py --tokenizer DIR --input data.jsonl --output tokens.jsonl [--max-length N]

The input is JSON lines, a JSON list, or objects over several lines; a row is of one of these kinds (docs/files.md):
    {"text": "..."}                                  every token is supervised; EOS is appended
    {"prompt": "...", "completion": "..."}           the completion and the EOS appended to it are supervised; also
                                                     "response", and "question" and "answer"
    {"instruction": "...", "input": "...", "output": "..."}
                                                     likewise, after ### Instruction, ### Input and ### Response
    {"messages": [{"role": "...", "content": "..."}, ...]}
                                                     laid out by the tokenizer's chat template; the assistant's turns
                                                     are supervised, including what ends a turn; also "conversations"
                                                     with "from" and "value", and "prompt" and "completion" as such lists
    {"input_ids": [...], "labels": [...]}            as they stand, and "weights" of the losses
With --objective dpo rows are pairs: {"prompt", "chosen", "rejected"}, or without the prompt where both begin with it, as
texts or as lists of turns, or "prompt_ids", "chosen_ids" and "rejected_ids".

Each output line is {"input_ids": [...], "labels": [...]}, equally long; a label is its position's own token (not
shifted) or -100 where nothing is supervised; "weights" where turns or tokens have weights other than 1. Of a pair it is
{"chosen_ids", "chosen_labels", "rejected_ids", "rejected_labels"}. Columns that are not read are named once on stderr.

A prompt and its completion are tokenized as one text, so that the tokens are those of the running text, unless a token
would reach from the prompt into the completion: then each is tokenized alone. BOS comes first where the tokenizer puts
it there; neither BOS nor EOS comes twice. --max-length N keeps the first N tokens of an example; one that has nothing
left to learn is dropped and counted.

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

from dataset_rows import (
    NOT_SUPERVISED,
    BadExample,
    Completion,
    Conversation,
    InputError,
    Pair,
    RowReader,
    Single,
    Text,
    Tokens,
    Turn,
    rows_of,
)

WAY_OUT = (
    "give prompt and completion as lists of turns, of which only the completion's is learned, or give input_ids and "
    "labels"
)


@dataclass
class Example:
    input_ids: list[int]
    labels: list[int]
    weights: list[float] | None = None  # of the losses; none: 1 each

    def row(self, which: str | None) -> dict:
        """As a line of the output has it; of a pair the chosen or the rejected part."""
        if which:
            return {f"{which}_ids": self.input_ids, f"{which}_labels": self.labels}
        row = {"input_ids": self.input_ids, "labels": self.labels}
        return row | {"weights": self.weights} if self.weights else row

    def cut(self, most: int) -> "Example":
        return Example(self.input_ids[:most], self.labels[:most], self.weights and self.weights[:most])

    def append(self, tokens: list[int], supervised: bool) -> None:
        self.input_ids += tokens
        self.labels += tokens if supervised else [NOT_SUPERVISED] * len(tokens)


def encode(tokenizer, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def encode_parts(tokenizer, before: str, after: str) -> tuple[list[int], list[int]]:
    """The two as one text, unless a token would reach over the border: at inference the model sees `before` alone."""
    head, whole = encode(tokenizer, before), encode(tokenizer, before + after)
    return (head, whole[len(head) :]) if whole[: len(head)] == head else (head, encode(tokenizer, after))


def leading_bos(tokenizer, text: list[int]) -> list[int]:
    """BOS, where the tokenizer puts it before a text and the text does not begin with it."""
    bos = tokenizer.bos_token_id
    puts_it = bos is not None and list(tokenizer("a")["input_ids"])[:1] == [bos]
    return [bos] if puts_it and text[:1] != [bos] else []


def closing_eos(tokenizer, text: list[int]) -> list[int]:
    """EOS, where there is one and the text does not end with it."""
    eos = tokenizer.eos_token_id
    return [eos] if eos is not None and text[-1:] != [eos] else []


def from_text(tokenizer, row: Text) -> Example:
    text = encode(tokenizer, row.text)
    example = Example([], [])
    example.append(leading_bos(tokenizer, text) + text + closing_eos(tokenizer, text), True)
    return example


def from_completion(tokenizer, row: Completion) -> Example:
    prompt, completion = encode_parts(tokenizer, row.prompt, row.completion)
    example = Example([], [])
    example.append(leading_bos(tokenizer, prompt) + prompt, False)
    example.append(completion + closing_eos(tokenizer, completion), True)
    return example


def render(tokenizer, turns: list[Turn], add_generation_prompt: bool) -> str:
    if tokenizer.chat_template is None:
        raise BadExample("the tokenizer has no chat template; add one to its directory or give prompt and completion")
    messages = [{"role": turn.role, "content": turn.content} for turn in turns]
    try:
        return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=add_generation_prompt)
    except (jinja2.TemplateError, TypeError, ValueError, IndexError) as failure:
        raise BadExample(f"the chat template refuses the messages ({failure}); follow its order of roles") from None


def before_turn(tokenizer, turns: list[Turn], text: str) -> str:
    """What stands before the assistant's next turn; `text` is the rendering of all messages."""
    if turns:
        return render(tokenizer, turns, add_generation_prompt=True)
    # No template renders nothing at all: the generation prompt behind another message tells what it is.
    probe = [Turn("user", "a")]
    prompt = render(tokenizer, probe, True).removeprefix(render(tokenizer, probe, False))
    if prompt not in text:
        raise BadExample(f"the chat template begins message 0 otherwise than it begins an answer; {WAY_OUT}")
    return text[: text.find(prompt) + len(prompt)]


def assistant_spans(tokenizer, turns: list[Turn], text: str) -> list[tuple[int, int, float]]:
    """Character spans of the assistant's turns that are learned in `text`, the rendering of all messages, and weights.

    A turn is what the template adds to its generation prompt when the turn is appended. White space after the turn's
    end marker belongs to the layout, not to the turn: generation has stopped by then.
    """
    spans = []
    for index, turn in enumerate(turns):
        if turn.role != "assistant" or turn.weight == 0:
            continue
        before = before_turn(tokenizer, turns[:index], text)
        through = render(tokenizer, turns[: index + 1], add_generation_prompt=False).rstrip()
        if not through.startswith(before) or not text.startswith(through):
            raise BadExample(
                f"the chat template changes what precedes message {index} or the message itself as the conversation "
                f"grows, so its tokens cannot be told apart; {WAY_OUT}"
            )
        spans.append((len(before), len(through), turn.weight))
    return spans


def end_of_token(tokenizer, token: int, text: str, begin: int, end: int) -> int:
    """Of a special token that swallows the white space behind it, the end of its name."""
    added = tokenizer.added_tokens_decoder.get(token)
    place = text.find(added.content, begin, end) if added and added.rstrip else -1
    return place + len(added.content) if place >= 0 else end


def from_turns(tokenizer, row: Conversation) -> Example:
    text = render(tokenizer, row.turns, add_generation_prompt=False)
    spans = assistant_spans(tokenizer, row.turns, text)
    # The template has written BOS and the like itself. The end of a token decides because tokenizers leave a leading
    # space out of a token's span but never its last character.
    encoding = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    input_ids = list(encoding["input_ids"])
    labels, weights = [], []
    for token, (token_begin, token_end) in zip(input_ids, encoding["offset_mapping"], strict=True):
        at = end_of_token(tokenizer, token, text, token_begin, token_end)
        weight = next((weight for begin, end, weight in spans if begin < at <= end), 0)
        labels.append(token if weight else NOT_SUPERVISED)
        weights.append(weight or 1)
    return Example(input_ids, labels, weights if any(weight != 1 for weight in weights) else None)


def example_of(tokenizer, row: Single) -> Example:
    match row:
        case Tokens():
            example = Example(row.input_ids, row.labels, row.weights)
        case Text():
            example = from_text(tokenizer, row)
        case Completion():
            example = from_completion(tokenizer, row)
        case Conversation():
            example = from_turns(tokenizer, row)
    return example


def learns(labels: list[int]) -> bool:
    # The first token is never predicted, so a label there teaches nothing.
    return any(label != NOT_SUPERVISED for label in labels[1:])


@dataclass
class Limit:
    """How long an example may be, and what becomes of one that is longer: error, truncate or drop."""

    max_length: int | None
    on_too_long: str


@dataclass
class Totals:
    examples: int = 0
    tokens: int = 0
    supervised: int = 0
    cut: int = 0
    dropped: int = 0
    emptied: int = 0


def kept(examples: list[Example], limit: Limit, totals: Totals) -> list[Example] | None:
    """The example, or both of a pair, within the limit, or nothing where it is left out; counted."""
    names = ["the sample"] if len(examples) == 1 else ["the chosen sequence", "the rejected sequence"]
    most, cut = limit.max_length, []
    for name, example in zip(names, examples):
        count = len(example.input_ids)
        if count < 2:
            plural = "" if count == 1 else "s"
            raise BadExample(f"{name} has {count} token{plural}; give at least 2: one to read and one to predict")
        longer = most is not None and count > most
        if longer and limit.on_too_long == "error":
            raise BadExample(
                f"{name} has {count} tokens, max_length is {most}; shorten it, raise max_length, or set on_too_long to "
                "truncate or drop"
            )
        if not learns(example.labels) and not (longer and limit.on_too_long == "drop"):
            which = "" if len(examples) == 1 else f"of {name} "
            raise BadExample(
                f"{which}no token past the first is supervised; give a label, a completion or an assistant's message"
            )
        cut.append(example.cut(most) if longer else example)
    too_long = any(len(a.input_ids) < len(b.input_ids) for a, b in zip(cut, examples))
    if too_long and limit.on_too_long == "drop":
        totals.dropped += 1
        return None
    if not all(learns(example.labels) for example in cut):
        totals.emptied += 1
        return None
    totals.cut += too_long
    totals.examples += 1
    totals.tokens += sum(len(example.input_ids) for example in cut)
    totals.supervised += sum(label != NOT_SUPERVISED for example in cut for label in example.labels)
    return cut


def check_some(totals: Totals, where: str, limit: Limit) -> None:
    if totals.examples > 0:
        return
    if totals.emptied > 0:
        raise InputError(
            f"{where}: of no sample is there anything to learn in the first {limit.max_length} tokens; raise max_length"
        )
    if totals.dropped > 0:
        raise InputError(
            f"{where}: every sample is longer than max_length {limit.max_length}; raise max_length or set on_too_long "
            "to truncate"
        )
    raise InputError(f"{where}: the dataset is empty; give at least one sample")


def convert(tokenizer, input_file: Path, output, limit: Limit, reader: RowReader) -> Totals:
    totals = Totals()
    for line, record in rows_of(input_file):
        try:
            said = reader.read(record)
            rows = [said.chosen, said.rejected] if isinstance(said, Pair) else [said]
            examples = kept([example_of(tokenizer, row) for row in rows], limit, totals)
        except BadExample as failure:
            raise InputError(f"{input_file}:{line}: {failure}") from None
        if examples:
            row = examples[0].row("chosen" if reader.pairs else None)
            if reader.pairs:
                row |= examples[1].row("rejected")
            output.write(json.dumps(row, separators=(",", ":")) + "\n")
    check_some(totals, f"{input_file}:1", limit)
    return totals


def convert_to_file(tokenizer, input_file: Path, output_file: Path, limit: Limit, reader: RowReader) -> Totals:
    # Beside the output, because a rename is only atomic within one file system.
    temporary = output_file.with_name(f"{output_file.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("x", encoding="utf-8") as output:
            totals = convert(tokenizer, input_file, output, limit, reader)
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
    parser.add_argument(
        "--on-too-long",
        choices=("error", "truncate", "drop"),
        default="truncate",
        help="what becomes of an example of more than N tokens",
    )
    parser.add_argument("--objective", choices=("sft", "dpo"), default="sft", help="dpo: rows are pairs")
    return parser.parse_args()


def tell(output: Path, totals: Totals, reader: RowReader) -> None:
    left_out = totals.dropped + totals.emptied
    print(
        f"{output}: {totals.examples} examples, {totals.tokens} tokens, {totals.supervised} supervised, "
        f"{totals.cut} cut to --max-length, {left_out} dropped"
        + (", of which the cut left nothing to learn" if totals.emptied else "")
    )
    if reader.unread:
        print("columns that are not read: " + ", ".join(reader.unread), file=sys.stderr)
    for choice in reader.preferred:
        print(f"rows of two kinds are read as TRL reads them: {choice}", file=sys.stderr)


def main() -> int:
    arguments = parse_arguments()
    reader = RowReader(arguments.input, arguments.objective == "dpo")
    limit = Limit(arguments.max_length, arguments.on_too_long)
    try:
        tokenizer = load_tokenizer(arguments.tokenizer)
        totals = convert_to_file(tokenizer, arguments.input, arguments.output, limit, reader)
    except InputError as failure:
        message = str(failure)
    except OSError as failure:
        message = f"{failure.filename or arguments.output}: {failure.strerror}; check the path and its permissions"
    else:
        tell(arguments.output, totals, reader)
        return 0
    line = " ".join(message.split()).encode("utf-8", "replace").decode("utf-8")
    print("error: " + line, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
