#!/usr/bin/env python3
"""Writes the golden files of tokenizers: small ones of each form that model folders have, and what transformers makes of
texts with them.

    python3 -m venv /tmp/golden-5-venv
    /tmp/golden-5-venv/bin/pip install -r scripts/golden/requirements_5.txt
    /tmp/golden-5-venv/bin/python scripts/golden/make_tokenizers.py [--out tests/golden/tokenizers]

OUT/texts.json: the texts, a list of strings.
OUT/<form>/:
    tokenizer.json or tokenizer.model, and the JSON files of Hugging Face's that lie beside it
    expected.json: {"ids": of each text, without BOS and EOS, null for a text left out, "bos", "eos": ids or null, "prepends_bos"}
"""

import argparse
import io
import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, logging

REPOSITORY = Path(__file__).resolve().parents[2]

CORPUS = [
    "The weaver threads the loom, and the loom holds many threads; it's what weavers do, isn't it?",
    "In 1804 Joseph-Marie Jacquard made 1,024 cards. Then 12345678 more, at 3.50 each.",
    "Die Weberin webt das Tuch, über und über; das Maß ist 42 Ellen.",
    "Le tisserand tisse la toile à l'ombre, où l'été dure.",
    "def weave(threads):\n    for thread in threads:\n        yield thread + 1\n",
    "織機は糸を織る。布は糸から。 ткач ткёт ткань на станке. नमस्ते दुनिया",
    "WE'LL see the LOOM's end\tand   then\r\n\r\nnothing  more.  ",
] * 4

SPECIAL = ("<s>", "</s>", "<unk>", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool>", "<mask>", "<word>", "café")

HOSTILE = [
    "",
    " ",
    "  ",
    "\n",
    "\t \n \r\n\r\n  x",
    "the loom",
    " the loom",
    "   the   loom   ",
    "the loom\n",
    "weavers' looms'll they'Re I'D it'S we'vE 'twas",
    "it\u017f 'ſ 's'S",
    "0 12 123 1234 12345 123456 1,234.5 ¹²³ ½ Ⅷ ١٢٣ १२३",
    "e\u0301te\u0301 é \u1112\u1161\u11ab 한 \u0344 \u212b Å ﬁ ①",
    "a\u0300\u0301\u0302\u0303b \u0301x",
    "👩‍👩‍👧‍👦 🇩🇪🇫🇷 👍🏽 ❤️ 🏴\U000e0067\U000e0062\U000e007f",
    "\x00\x01\x07\x1b[0m\x7f\u0080\u009f\u00ad",
    "a\u00a0b\u2003c\u3000d\u200be\u2028f\u2029g\u0085h\ufeffi",
    "line\r\nline\rline\n\n\nline \n x\n",
    "العربية עברית 中文字 ไทย 日本語のテキスト",
    "▁ ▁▁a a▁b _ ‗",
    "<s>the loom</s>",
    "<s> the loom </s> <s>",
    "the<|im_start|>loom<|im_end|> and <|im_start|> x",
    "<|im_start|>user\nweave<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|<|im_end|>|> <|im_end <<s>> </s</s>",
    "<unk> <pad> [INST] <0x0A> <0x41> Ġthe Ċ",
    "a <mask> b<mask>c  <mask>\n<mask> <tool> <tool>",
    "<word>word<word> <word>, x<word> é<word> <word>",
    "café cafe\u0301 CAFÉ xcaféy",
    "<tool>\n\n<tool>  <tool>\t",
    "x" * 130,
    "thethethe weaveweaver 1111111111 ........ !!!??? -----",
    "def f(x):\n\treturn x ** 2  # ünïcode\n\n\n    pass",
    "\ue000\uf8ff\U0010fffd \ufffd \ufdd0",
    "http://example.org/~a?b=c&d=%20#e foo@bar.baz C:\\path\\n",
    "İstanbul ǆ ß ẞ ſt K Ω",
]


def random_texts(count: int) -> list[str]:
    letters = ["the", "loom", "weav", " ", " ", "  ", "\n", "\r\n", "\t", "1", "23", "456", "'s", "'LL", "é", "e\u0301", "ü"]
    letters += ["織", "糸", "я", "न", "्", ".", ",", "!?", "-", "▁", "👍🏽", "\u200d", "\u00a0", "\u3000", "\x00", "ﬁ", "Å", "A", "Z"]
    letters += list(SPECIAL) * 2
    chosen = random.Random(20)
    return ["".join(chosen.choices(letters, k=chosen.randint(1, 16))) for _ in range(count)]


TEXTS = HOSTILE + random_texts(120)


@dataclass
class Form:
    """What a folder holds: `make` gives tokenizer.json's Tokenizer, or the bytes of tokenizer.model.

    Texts with what `apart` names are left out: transformers takes it otherwise than the model's own library.
    """

    make: Callable[[], Tokenizer | bytes]
    model_type: str
    config: dict | None = None
    files: dict = field(default_factory=dict)
    apart: str | None = None


def train(tokenizer: Tokenizer, size: int, special: list[str], by_bytes: bool) -> Tokenizer:
    alphabet = pre_tokenizers.ByteLevel.alphabet() if by_bytes else []
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def special_token(content: str, **flags) -> AddedToken:
    return AddedToken(content, special=True, normalized=False, **flags)


def gpt2() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    train(tokenizer, 400, [], True)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


LLAMA3_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def split_bytes(expression: str) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(expression), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def llama3() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = split_bytes(LLAMA3_WORDS)
    train(tokenizer, 400, [], True)
    tokenizer.add_special_tokens([special_token(token) for token in ("<s>", "</s>", "<|im_start|>", "<|im_end|>")])
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 400)]),
        ]
    )
    return tokenizer


QWEN2_WORDS = LLAMA3_WORDS.replace(r"\p{N}{1,3}", r"\p{N}")


def qwen2() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = split_bytes(QWEN2_WORDS)
    train(tokenizer, 400, [], True)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False)])
    return tokenizer


def qwen3_other_words() -> Tokenizer:
    """A file that cuts otherwise than its class: the class is what counts."""
    tokenizer = qwen2()
    tokenizer.normalizer = None
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return tokenizer


def byte_fallback_model(**more) -> models.BPE:
    """Merges that are trained on words with their mark, and a byte's token for each byte."""
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    train(trained, 400, ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))], False)
    model = json.loads(trained.to_str())["model"]
    merges = [tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge) for merge in model["merges"]]
    return models.BPE(
        vocab=model["vocab"], merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True, **more
    )


def llama2() -> Tokenizer:
    tokenizer = Tokenizer(byte_fallback_model())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    tokenizer.add_special_tokens([special_token(token) for token in ("<unk>", "<s>", "</s>")])
    return tokenizer


def metaspace() -> Tokenizer:
    tokenizer = llama2()
    tokenizer.normalizer = None
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=True)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return tokenizer


def no_fallback() -> Tokenizer:
    """Letters that are no tokens become <unk>, each its own."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.NFKD()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    return train(tokenizer, 120, ["<unk>", "<s>", "</s>"], False)


def cuts() -> Tokenizer:
    """Splits of every behaviour, one after the other, and added tokens of every kind."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace("LOOM", "loom")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"[\r\n]"), "isolated"),
            pre_tokenizers.Split(Regex(r"\s?\p{L}+"), "merged_with_previous", invert=True),
            pre_tokenizers.Split(Regex(r"\s?[!-/:-~]+"), "merged_with_next"),
            pre_tokenizers.Split(Regex(r"[一-龥ࠀ-一가-퟿]+"), "contiguous"),
            pre_tokenizers.Split("糸", "removed"),
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False),
        ]
    )
    train(tokenizer, 400, [], True)
    tokenizer.add_special_tokens([special_token("<s>"), special_token("</s>", rstrip=True)])
    tokenizer.add_tokens(
        [
            AddedToken("<mask>", lstrip=True, normalized=False),
            AddedToken("<tool>", lstrip=True, rstrip=True),
            AddedToken("<word>", single_word=True),
            AddedToken("café", normalized=True),
            AddedToken("weav", normalized=False, single_word=True),
        ]
    )
    return tokenizer


def sentencepiece_model(kind: str, **more) -> bytes:
    output = io.BytesIO()
    settings = {
        "model_type": kind,
        "vocab_size": 420,
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "split_digits": True,
        "num_threads": 1,
        "minloglevel": 2,
        "hard_vocab_limit": False,
        "character_coverage": 0.98,
    }
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=output, **{**settings, **more}
    )
    return output.getvalue()


def added(**tokens: dict) -> dict:
    """An added_tokens_decoder; keys are "_ID"."""
    usual = {"lstrip": False, "rstrip": False, "normalized": False, "single_word": False, "special": True}
    return {identifier[1:]: {**usual, **token} for identifier, token in tokens.items()}


LLAMA = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "tokenizer_class": "LlamaTokenizer"}
LLAMA_TOKENS = {"_0": {"content": "<unk>"}, "_1": {"content": "<s>"}, "_2": {"content": "</s>"}}
CHAT_TOKENS = {"_420": {"content": "<|im_start|>"}, "_421": {"content": "<|im_end|>"}}

FORMS = {
    "gpt2": Form(gpt2, "llama", {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": False}),
    "llama3": Form(
        llama3,
        "llama",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": "<s>",
            "eos_token": "<|im_end|>",
            "model_input_names": ["input_ids", "attention_mask"],
            "clean_up_tokenization_spaces": True,
        },
    ),
    "qwen2": Form(
        qwen2,
        "qwen2",
        {
            "tokenizer_class": "Qwen2Tokenizer",
            "add_bos_token": False,
            "bos_token": None,
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "unk_token": None,
            "split_special_tokens": False,
            "additional_special_tokens": ["<|im_start|>", "<|im_end|>"],
            "added_tokens_decoder": added(
                _400={"content": "<|endoftext|>"},
                _401={"content": "<|im_start|>"},
                _402={"content": "<|im_end|>"},
                _403={"content": "<tool>", "special": False},
            ),
        },
    ),
    "qwen3_other_words": Form(qwen3_other_words, "qwen3"),
    "llama2": Form(
        llama2, "llama", {**LLAMA, "add_bos_token": True, "legacy": False, "added_tokens_decoder": added(**LLAMA_TOKENS)}
    ),
    "llama2_legacy": Form(llama2, "llama", {**LLAMA, "legacy": True, "pad_token": "<pad>", "extra_token": "<tool>"}),
    "mistral": Form(
        llama2,
        "mistral",
        {**LLAMA, "add_prefix_space": None, "legacy": False, "additional_special_tokens": [{"content": "<mask>", "lstrip": True, "__type": "AddedToken"}]},
    ),
    "metaspace": Form(
        metaspace,
        "llama",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": {"content": "<s>", "__type": "AddedToken", "lstrip": False},
            "eos_token": "</s>",
            "added_tokens_decoder": added(**LLAMA_TOKENS, _400={"content": "<|im_start|>", "rstrip": True}),
        },
    ),
    "no_fallback": Form(no_fallback, "llama", {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>"}),
    "cuts": Form(cuts, "llama", {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>"}),
    "older_files": Form(
        llama2,
        "llama",
        {"tokenizer_class": "LlamaTokenizerFast"},
        {
            "special_tokens_map.json": {
                "bos_token": {"content": "<s>", "lstrip": False, "normalized": True, "rstrip": False, "single_word": False},
                "eos_token": "</s>",
                "additional_special_tokens": ["<|im_start|>"],
            },
            "added_tokens.json": {"<|im_start|>": 400, "<|im_end|>": 401},
        },
    ),
    "model_llama": Form(
        lambda: sentencepiece_model("bpe"),
        "llama",
        {**LLAMA, "add_bos_token": True, "legacy": True, "added_tokens_decoder": added(**LLAMA_TOKENS, **CHAT_TOKENS)},
    ),
    "model_llama_first": Form(
        lambda: sentencepiece_model("bpe", user_defined_symbols=["<tool>", "weav"]),
        "llama",
        {"tokenizer_class": "LlamaTokenizer", "legacy": False},
        {"added_tokens.json": {"<|im_start|>": 420, "<|im_end|>": 421}},
    ),
    "model_mistral": Form(
        lambda: sentencepiece_model("bpe", user_defined_symbols=["<tool>"]),
        "mistral",
        {**LLAMA, "add_bos_token": True, "added_tokens_decoder": added(**LLAMA_TOKENS, **CHAT_TOKENS)},
    ),
    "model_first": Form(
        lambda: sentencepiece_model("bpe", remove_extra_whitespaces=True),
        "mistral",
        {**LLAMA, "legacy": False, "added_tokens_decoder": added(**LLAMA_TOKENS, **CHAT_TOKENS)},
        apart="▁",
    ),
    "model_unigram": Form(lambda: sentencepiece_model("unigram", vocab_size=380), "llama", apart="<0x"),
}


def write_json(file: Path, content) -> None:
    file.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def write_folder(form: Form, directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    made = form.make()
    if isinstance(made, bytes):
        (directory / "tokenizer.model").write_bytes(made)
    else:
        made.save(str(directory / "tokenizer.json"), pretty=False)
    write_json(directory / "config.json", {"model_type": form.model_type})
    if form.config is not None:
        write_json(directory / "tokenizer_config.json", form.config)
    for name, content in form.files.items():
        write_json(directory / name, content)


def expected_of(form: Form, directory: Path) -> dict:
    tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
    bos = tokenizer.bos_token_id
    return {
        "ids": [
            None if form.apart and form.apart in text else tokenizer(text, add_special_tokens=False)["input_ids"]
            for text in TEXTS
        ],
        "bos": bos,
        "eos": tokenizer.eos_token_id,
        "prepends_bos": bos is not None and tokenizer("a")["input_ids"][:1] == [bos],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the golden files of tokenizers.")
    parser.add_argument(
        "--out", type=Path, default=REPOSITORY / "tests" / "golden" / "tokenizers", help="default: %(default)s"
    )
    parser.add_argument("forms", nargs="*", help="those to write; default: all")
    arguments = parser.parse_args()
    logging.set_verbosity_error()
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_json(arguments.out / "texts.json", TEXTS)
    for name in arguments.forms or FORMS:
        directory = arguments.out / name
        write_folder(FORMS[name], directory)
        expected = expected_of(FORMS[name], directory)
        (directory / "expected.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")
        size = sum(file.stat().st_size for file in directory.iterdir())
        print(f"{name}: {sum(len(ids or []) for ids in expected['ids'])} tokens, {size} bytes")


if __name__ == "__main__":
    main()
