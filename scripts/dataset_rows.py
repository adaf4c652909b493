"""The rows of a dataset and what each of them says, as braid reads them (workload/text/rows.h and row.h): the same rows
are taken, with the same loss, and the others refused in the same words. tests/workload/text/rows.json holds both to it.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

NOT_SUPERVISED = -100
SPACE = " \t\r\n"


class InputError(Exception):
    """Says in one line what is wrong, where, and what would be right."""


class BadExample(Exception):
    """The same for one row, by code that does not know which line it is from."""


# --- From a file to its rows.

_TO_JSONL = "python3 -c \"import pandas; pandas.read_{1}('{0}').to_json('{2}', orient='records', lines=True)\""
_FROM_STREAM = "python3 -c \"import datasets; datasets.Dataset.from_file('{0}').to_json('{2}')\""
# First bytes, what they show, the command ({0}: the file, {2}: what it makes), and whether that makes JSON lines.
_MARKS = (
    (b"\x1f\x8b", "gzip", "gunzip -c {0} > {2}", False),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -dc {0} > {2}", False),
    (b"\xfd7zXZ", "xz", "xz -dc {0} > {2}", False),
    (b"BZh", "bzip2", "bunzip2 -c {0} > {2}", False),
    (b"PK\x03\x04", "zip", "unzip -p {0} > {2}", False),
    (b"PAR1", "Parquet", _TO_JSONL.replace("{1}", "parquet"), True),
    (b"ARROW1", "Arrow", _TO_JSONL.replace("{1}", "feather"), True),
    (b"\xff\xff\xff\xff", "Arrow", _FROM_STREAM, True),
    (b"\xff\xfe\0\0", "UTF-32", "iconv -f UTF-32 -t UTF-8 {0} > {2}", False),
    (b"\0\0\xfe\xff", "UTF-32", "iconv -f UTF-32 -t UTF-8 {0} > {2}", False),
    (b"\xff\xfe", "UTF-16", "iconv -f UTF-16 -t UTF-8 {0} > {2}", False),
    (b"\xfe\xff", "UTF-16", "iconv -f UTF-16 -t UTF-8 {0} > {2}", False),
)


def _name_of_text(file: Path, table: bool) -> Path:
    if file.suffix in (".gz", ".zst", ".xz", ".bz2", ".zip"):
        return file.with_suffix("")
    wanted = ".jsonl" if table else file.suffix
    return file.with_suffix(".text" + file.suffix if wanted == file.suffix else wanted)


def _remedy(command: str, file: Path, table: bool) -> str:
    return command.format(file, "", _name_of_text(file, table))


def _check_form(content: bytes, file: Path) -> None:
    for mark, what, command, table in _MARKS:
        if content.startswith(mark):
            break
    else:
        zeros = [byte == 0 for byte in content[:4]]
        if len(zeros) < 4 or zeros[0] == zeros[1] or zeros[:2] != zeros[2:]:
            return
        what, table = "UTF-16", False
        command = f"iconv -f UTF-16{'BE' if zeros[0] else 'LE'} -t UTF-8 {{0}} > {{2}}"
    raise InputError(f"{file}:1: the file is {what}, not rows of JSON; convert it: {_remedy(command, file, table)}")


def _decoded(content: bytes, file: Path) -> str:
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as failure:
        line = 1 + content.count(b"\n", 0, failure.start)
        command = _remedy("iconv -f LATIN1 -t UTF-8 {0} > {2}", file, False)
        raise InputError(f"{file}:{line}: not UTF-8; if it is Latin-1, convert it: {command}") from None


def _distinct(pairs: list[tuple]) -> dict:
    record = {}
    for key, value in pairs:
        if key in record:
            raise BadExample(f"key '{key}' is given twice; keep one")
        record[key] = value
    return record


def _no_constant(text: str):
    raise BadExample(f"not valid JSON ({text} is no number); mend the syntax")


_DECODER = json.JSONDecoder(object_pairs_hook=_distinct, parse_constant=_no_constant)


def _check_surrogates(record) -> None:
    try:
        json.dumps(record, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise BadExample("not valid JSON (half a surrogate pair); mend the syntax") from None


class _Rows:
    """The text of a file, and how far it has been read."""

    def __init__(self, text: str, file: Path):
        self.text, self.file, self.at, self.line = text, file, 0, 1

    def read(self) -> Iterator[tuple[int, object]]:
        self._skip_space()
        if self._at_end():
            return
        if self.text[self.at] == "[":
            yield from self._list()
        elif self._line_at_hand() == "{":
            yield from self._objects()
        else:
            if self.text[self.at] != "{":
                self._refuse_table()
            yield from self._lines()

    def _at_end(self) -> bool:
        return self.at == len(self.text)

    def _move_to(self, place: int) -> None:
        self.line += self.text.count("\n", self.at, place)
        self.at = place

    def _skip_space(self) -> None:
        place = self.at
        while place < len(self.text) and self.text[place] in SPACE:
            place += 1
        self._move_to(place)

    def _line_at_hand(self) -> str:
        end = self.text.find("\n", self.at)
        return self.text[self.at : end if end >= 0 else len(self.text)].rstrip(SPACE)

    def _error(self, message: str) -> InputError:
        return InputError(f"{self.file}:{self.line}: {message}")

    def _refuse_table(self) -> None:
        if re.search("[,;\t]", self._line_at_hand()):
            command = _remedy(_TO_JSONL.replace("{1}", "csv"), self.file, True)
            raise self._error(f"no row of JSON; the file looks like CSV; convert it: {command}")

    def _value(self, text: str, at: int) -> tuple[object, int]:
        try:
            record, end = _DECODER.raw_decode(text, at)
            _check_surrogates(record)
            return record, end
        except json.JSONDecodeError as failure:
            line = self.line + text.count("\n", at, failure.pos)
            reason = f"not valid JSON ({failure.msg} at column {failure.colno}); mend the syntax"
            raise InputError(f"{self.file}:{line}: {reason}") from None
        except RecursionError:
            raise self._error("nested too deeply; give a flatter file") from None
        except BadExample as failure:
            raise self._error(str(failure)) from None

    def _lines(self) -> Iterator[tuple[int, object]]:
        while not self._at_end():
            row = self._line_at_hand()
            if "\r" in row:
                command = _remedy("tr '\\r' '\\n' < {0} > {2}", self.file, False)
                raise self._error(f"lines end in a carriage return alone; convert it: {command}")
            record, end = self._value(row, 0)
            if row[end:].strip(SPACE):
                raise self._error("not valid JSON (text follows the row); mend the syntax")
            yield self.line, record
            self._move_to(self.at + len(row))
            self._skip_space()

    def _objects(self) -> Iterator[tuple[int, object]]:
        while not self._at_end():
            record, end = self._value(self.text, self.at)
            yield self.line, record
            self._move_to(end)
            self._skip_space()

    def _list(self) -> Iterator[tuple[int, object]]:
        self._move_to(self.at + 1)
        self._skip_space()
        more = self._at_end() or self.text[self.at] != "]"
        while more:
            record, end = self._value(self.text, self.at)
            yield self.line, record
            self._move_to(end)
            self._skip_space()
            if self._at_end() or self.text[self.at] not in ",]":
                reason = "the list of rows goes on without a comma or an end"
                raise self._error(f"not valid JSON ({reason}); mend the syntax")
            more = self.text[self.at] == ","
            if more:
                self._move_to(self.at + 1)
            self._skip_space()
        self._move_to(self.at + 1)
        self._skip_space()
        if not self._at_end():
            raise self._error("text follows the list of rows; give one list, or a row a line")


def rows_of(file: Path) -> Iterator[tuple[int, object]]:
    """Each row with its line: JSON lines, the elements of one list, or objects over several lines."""
    content = file.read_bytes()
    _check_form(content, file)
    yield from _Rows(_decoded(content, file), file).read()


# --- From a row to what it says.


@dataclass
class Tokens:
    input_ids: list[int]
    labels: list[int]
    weights: list[float] | None = None


@dataclass
class Text:
    text: str


@dataclass
class Completion:
    prompt: str
    completion: str


@dataclass
class Turn:
    role: str
    content: str
    weight: float = 1.0


@dataclass
class Conversation:
    turns: list[Turn]


Single = Tokens | Text | Completion | Conversation


@dataclass
class Pair:
    chosen: Single
    rejected: Single


@dataclass
class _Kind:
    name: str
    rank: int
    needed: tuple[str, ...]
    optional: tuple[str, ...] = ()


_KINDS = (
    _Kind("input_ids", 0, ("input_ids",), ("labels", "weights")),
    _Kind("prompt and completion", 1, ("prompt", "completion")),
    _Kind("prompt and response", 1, ("prompt", "response")),
    _Kind("messages", 2, ("messages",), ("system",)),
    _Kind("conversations", 2, ("conversations",), ("system",)),
    _Kind("text", 3, ("text",)),
    _Kind("instruction and output", 4, ("instruction", "output"), ("input",)),
    _Kind("question and answer", 4, ("question", "answer")),
)
_KINDS_OF_PAIRS = (
    _Kind(
        "chosen_ids and rejected_ids", 0, ("chosen_ids", "rejected_ids"), ("prompt_ids", "chosen_labels", "rejected_labels")
    ),
    _Kind("prompt, chosen and rejected", 1, ("prompt", "chosen", "rejected")),
    _Kind("chosen and rejected", 2, ("chosen", "rejected")),
)
_PAIRS_REMEDY = 'give {"prompt", "chosen", "rejected"}, or {"prompt_ids", "chosen_ids", "rejected_ids"}'
_KINDS_REMEDY = (
    'give one of {"text"}, {"prompt", "completion"}, {"messages"}, {"conversations"}, '
    '{"instruction", "input", "output"}, {"question", "answer"}, {"input_ids", "labels"}'
)
_CHANGING = {
    "labels", "weights", "ref_chosen_logps", "ref_rejected_logps", "system", "tools", "functions", "history", "images", "image", "videos", "video", "audios", "audio",
    "loss_mask", "completion_mask", "assistant_masks", "label_mask", "seq_lengths", "chat_template_kwargs",
}  # fmt: skip
_ROLES = {
    "system": "system", "developer": "system", "user": "user", "human": "user", "assistant": "assistant",
    "gpt": "assistant", "model": "assistant", "bot": "assistant", "chatgpt": "assistant", "tool": "tool",
    "function": "tool", "observation": "tool", "ipython": "tool", "tool_response": "tool",
}  # fmt: skip
_VALID_ROLES = (
    "valid: system (developer), user (human), assistant (gpt, model, bot, chatgpt), tool (function, observation, "
    "ipython, tool_response)"
)
_TURN_KEYS = {"role", "from", "content", "value", "weight"}
_HARMLESS = {
    "id", "message_id", "parent_id", "tool_call_id", "timestamp", "created_at", "date", "lang", "language", "index",
    "turn", "tokens",
}  # fmt: skip
_WAY_OUT = "write it into the content as your model's chat template would, or give input_ids"


def _described(value) -> str:
    if value is None:
        return "empty"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a map"
    return f"'{value if isinstance(value, str) else json.dumps(value)}'"


def _string(value, what: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        raise BadExample(f"'{what}' is {json.dumps(value)}, not a string; put it in quotes")
    kind = "null" if value is None else "a list" if isinstance(value, list) else "an object"
    raise BadExample(f"'{what}' is {kind}, not a string; give a string")


def _list(value, what: str) -> list:
    if not isinstance(value, list):
        raise BadExample(f"'{what}' is {_described(value)}; give a list")
    return value


def _integer(value, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadExample(f"'{what}' is {_described(value)}; give a whole number")
    return value


def _is_blank(value) -> bool:
    return value is None or value == "" or value == [] or value == {}


def _check_attention(mask: list) -> None:
    if not all(item is True or (item == 1 and isinstance(item, int)) for item in mask):
        raise BadExample(
            "attention_mask hides tokens; take the padding out of the row, and leave attention_mask out"
        )


def _check_positions(positions: list) -> None:
    if any(_integer(item, "position_ids") != index for index, item in enumerate(positions)):
        raise BadExample("position_ids do not count from 0; give a row for each sample, and leave them out")


def _no_kind(record: dict, file: Path, pairs: bool) -> BadExample:
    present = {key for key, value in record.items() if value is not None}
    if not pairs and any(present >= {f"chosen{end}", f"rejected{end}"} for end in ("", "_ids")):
        return BadExample(
            "a chosen and a rejected answer, which no task of objective sft learns from; set the task's objective: "
            "{type: dpo}"
        )
    for key, value in record.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            if value[0].keys() & {"role", "from"}:
                return BadExample(f"'{key}' holds turns, and is no name of theirs that is known; name it messages")
            command = f"jq -c '.[\"{key}\"][]' {file} > rows.jsonl"
            return BadExample(
                f"'{key}' holds a list of objects where a row is wanted; if they are the rows, take them out: {command}"
            )
    columns = ", ".join(key + (" (null)" if value is None else "") for key, value in record.items())
    return BadExample(f"these fields are no kind of sample: {columns or 'none'}; {_PAIRS_REMEDY if pairs else _KINDS_REMEDY}")


def _either(turn: dict, name: str, other: str):
    if name in turn and other in turn:
        raise BadExample(f"'{name}' and '{other}' are two names of one thing; keep one")
    if name not in turn and other not in turn:
        raise BadExample(f"'{name}' is missing; add '{name}'")
    return turn[other] if other in turn else turn[name]


def _role(word) -> str:
    word = _string(word, "role")
    if word == "function_call":
        raise BadExample(f"a turn that calls a function is not laid out; {_WAY_OUT}")
    if word not in _ROLES:
        raise BadExample(f"unknown role '{word}'; {_VALID_ROLES}")
    return _ROLES[word]


def _part(part) -> str:
    if not isinstance(part, dict):
        return _string(part, "content")
    kind = _string(part["type"], "type") if "type" in part else "text"
    if kind != "text":
        raise BadExample(f"a content part is of type '{kind}'; give parts of type text alone")
    if "text" not in part:
        raise BadExample("'text' is missing; add 'text'")
    return _string(part["text"], "text")


def _content(value) -> str:
    if value is None:
        return ""
    return "".join(_part(part) for part in value) if isinstance(value, list) else _string(value, "content")


def _loss_weight(value, what: str) -> float:
    if isinstance(value, str):
        raise BadExample(f"'{what}' is a string; give a number")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadExample(f"'{what}' is {_described(value)}; give a number")
    if not abs(value) <= 1e6:
        raise BadExample(f"'{what}' is {value:g}; give a number from -1e6 to 1e6")
    return float(value)


def _weight(value, role: str) -> float:
    weight = _loss_weight(value, "weight")
    if weight != 0 and role != "assistant":
        raise BadExample(
            f"'weight' is {weight:g} in a turn of the role {role}; leave it out: the loss is taken of the assistant's "
            "turns alone"
        )
    return weight


def _common_prompt(a: str, b: str) -> str:
    """What two texts begin with; a blank before what differs belongs to it, as in TRL."""
    size = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return a[: size - 1 if size and a[size - 1] == " " else size]


def _check_count(count: int, column: str, ids: str, tokens: int) -> None:
    if count != tokens:
        raise BadExample(f"{count} {column} for {tokens} {ids}; give as many {column} as {ids}")


def _ids(record: dict, ids: str, labels: str, weights: str | None = None) -> Tokens:
    """Of those columns; where there are no labels all is learned."""
    tokens = [_integer(item, ids) for item in _list(record[ids], ids)]
    learned = [_integer(item, labels) for item in _list(record.get(labels, tokens), labels)]
    if any(token < 0 for token in tokens) or any(label < 0 and label != NOT_SUPERVISED for label in learned):
        raise BadExample(f"an id is negative; give ids from 0, or {NOT_SUPERVISED} for labels that are not learned")
    _check_count(len(learned), labels, ids, len(tokens))
    if weights is None or weights not in record:
        return Tokens(tokens, learned)
    counts = [_loss_weight(item, weights) for item in _list(record[weights], weights)]
    _check_count(len(counts), weights, ids, len(tokens))
    return Tokens(tokens, [label if count else NOT_SUPERVISED for label, count in zip(learned, counts)], counts)


def alpaca_prompt(instruction: str, given: str) -> str:
    section = f"### Input:\n{given}\n\n" if given else ""
    return f"### Instruction:\n{instruction}\n\n{section}### Response:\n"


@dataclass
class RowReader:
    """Tells what the rows of one file say, and remembers the names of what it did not read."""

    file: Path
    pairs: bool = False
    unread: list[str] = field(default_factory=list)
    preferred: list[str] = field(default_factory=list)

    def read(self, record) -> Single | Pair:
        if not isinstance(record, dict):
            raise BadExample(f"not a JSON object; {_PAIRS_REMEDY if self.pairs else _KINDS_REMEDY}")
        present = {key: value for key, value in record.items() if value is not None}
        found = [kind for kind in (_KINDS_OF_PAIRS if self.pairs else _KINDS) if present.keys() >= set(kind.needed)]
        if not found:
            raise _no_kind(record, self.file, self.pairs)
        kind = found[0]
        if self.pairs:
            self._check_columns(present, kind)
            return self._pair(present, kind.needed[0])
        if len(found) > 1 and found[1].rank == kind.rank:
            raise BadExample(f"{kind.name}, and {found[1].name} as well, make two samples of one row; keep one of them")
        self._check_columns(present, kind)
        for other in found[1:]:
            self._remember(self.preferred, f"{kind.name}, not {other.name}")
        return self._said(present, kind)

    def _pair(self, record: dict, first: str) -> Pair:
        if first == "chosen_ids":
            pair = Pair(*(_ids(record, f"{which}_ids", f"{which}_labels") for which in ("chosen", "rejected")))
            prompt = [_integer(item, "prompt_ids") for item in _list(record.get("prompt_ids", []), "prompt_ids")]
            for answer in (pair.chosen, pair.rejected):
                answer.input_ids = prompt + answer.input_ids
                answer.labels = [NOT_SUPERVISED] * len(prompt) + answer.labels
            return pair
        if first == "prompt":
            pair = Pair(self._completion(record, "prompt", "chosen"), self._completion(record, "prompt", "rejected"))
        else:
            pair = self._pair_that_begins_alike(record["chosen"], record["rejected"])
        for said in (pair.chosen, pair.rejected):
            if isinstance(said, Conversation) and any(turn.weight not in (0, 1) for turn in said.turns):
                raise BadExample(
                    "'weight' of a turn of a pair is neither 0 nor 1; give 0 to take the turn out of the loss, or leave "
                    "it out"
                )
        return pair

    def _pair_that_begins_alike(self, chosen, rejected) -> Pair:
        if isinstance(chosen, list) != isinstance(rejected, list):
            raise BadExample(
                "of 'chosen' and 'rejected' one is a list of turns and one is not; give two texts or two lists"
            )
        if not isinstance(chosen, list):
            chosen, rejected = _string(chosen, "chosen"), _string(rejected, "rejected")
            if chosen == rejected:
                raise BadExample("'chosen' and 'rejected' are the same text; remove the row")
            prompt = _common_prompt(chosen, rejected)
            return Pair(Completion(prompt, chosen[len(prompt) :]), Completion(prompt, rejected[len(prompt) :]))
        ours, others = self._turns(chosen, "chosen"), self._turns(rejected, "rejected")
        if ours == others:
            raise BadExample("'chosen' and 'rejected' are the same turns; remove the row")
        for one, other in zip(ours, others):
            if one != other:
                break
            one.weight = other.weight = 0
        return Pair(Conversation(ours), Conversation(others))

    def _said(self, record: dict, kind: _Kind) -> Single:
        first = kind.needed[0]
        if first == "input_ids":
            return _ids(record, "input_ids", "labels", "weights")
        if first == "text":
            text = _string(record["text"], "text")
            if not text:
                raise BadExample("'text' is empty; give some text or remove the row")
            return Text(text)
        if first == "instruction":
            given = _string(record["input"], "input") if "input" in record else ""
            prompt = alpaca_prompt(_string(record["instruction"], "instruction"), given)
            return Completion(prompt, _string(record["output"], "output"))
        if len(kind.needed) == 2:
            return self._completion(record, *kind.needed)
        return self._conversation(record, first)

    def _remember(self, names: list[str], name: str) -> None:
        if name not in names:
            names.append(name)

    def _check_columns(self, record: dict, kind: _Kind) -> None:
        for column, value in record.items():
            if column in kind.needed or column in kind.optional:
                continue
            if column in _CHANGING and not _is_blank(value):
                raise BadExample(
                    f"'{column}' is not taken beside {kind.name}; remove it if it changes nothing, else give input_ids "
                    "and labels that say the same"
                )
            if column == "attention_mask":
                _check_attention(_list(value, column))
                if "input_ids" in record:
                    _check_count(len(value), column, "input_ids", len(record["input_ids"]))
            if column == "position_ids":
                _check_positions(_list(value, column))
            self._remember(self.unread, column)

    def _completion(self, record: dict, prompt: str, completion: str) -> Completion | Conversation:
        before, after = record[prompt], record[completion]
        if not (isinstance(before, list) and isinstance(after, list)):
            if isinstance(before, list) or isinstance(after, list):
                raise BadExample(
                    f"of '{prompt}' and '{completion}' one is a list of turns and one is not; give two texts or two lists"
                )
            return Completion(_string(before, prompt), _string(after, completion))
        turns = self._turns(before, prompt)
        for turn in turns:
            turn.weight = 0
        return Conversation(turns + self._turns(after, completion))

    def _conversation(self, record: dict, column: str) -> Conversation:
        turns = self._turns(record[column], column)
        if not _is_blank(record.get("system")):
            if turns[0].role == "system":
                raise BadExample(f"'system' and the first turn of '{column}' both are the system's; keep one")
            turns.insert(0, Turn("system", _string(record["system"], "system")))
        return Conversation(turns)

    def _turns(self, messages, what: str) -> list[Turn]:
        if not _list(messages, what):
            raise BadExample(f"'{what}' is empty; give a turn")
        return [self._turn(message, what) for message in messages]

    def _turn(self, message, what: str) -> Turn:
        if not isinstance(message, dict):
            raise BadExample(f"a turn of '{what}' is no object; give role and content")
        for key, value in message.items():
            self._check_turn_key(key, value)
        role = _role(_either(message, "role", "from"))
        content = _content(_either(message, "content", "value"))
        weight = message.get("weight")
        return Turn(role, content, 1.0 if weight is None else _weight(weight, role))

    def _check_turn_key(self, key: str, value) -> None:
        if key in _TURN_KEYS or value is None:
            return
        if key in _HARMLESS:
            self._remember(self.unread, f"a message's {key}")
        elif not _is_blank(value):
            if key in ("name", "tool_calls", "function_call"):
                raise BadExample(f"'{key}' of a message is not laid out; {_WAY_OUT}")
            raise BadExample(f"a message's '{key}' is not known; remove it if it changes nothing, else {_WAY_OUT}")
