#!/usr/bin/env python3
"""Writes the golden files that the C++ tests are held against, from PyTorch, transformers, PEFT and sentencepiece.

    python3 -m venv /tmp/golden-venv
    /tmp/golden-venv/bin/pip install -r scripts/golden/requirements.txt
    /tmp/golden-venv/bin/python scripts/golden/make_golden.py [--out tests/golden]

The tests read only what this writes, which is committed; nobody needs Python to build or test. Run it again after
changing a case or a pin in requirements.txt: with the same pins it writes the same bytes.

OUT/<case>/ for each case in CASES:
    config.json, *.safetensors[.index.json]   the backbone, as save_pretrained writes it
    adapter/                                  a LoRA adapter, as PEFT writes it
    expected.json                             hyper-parameters of the training run, library versions
    expected.safetensors                      (B=2, T=37, V=vocabulary, S=20 steps; all f32 or int64)
        input_ids, labels         [B, T]      labels are not shifted; -100 marks a position without a target
        logits, adapter_logits    [B, T, V]   without and with the adapter
        loss                      [1]         with the adapter: sum of the cross-entropies of labels[:, 1:] under
                                              logits[:, :-1], over the number of those labels that are not -100
        grad.<key>                            d loss / d adapter tensor; <key> as in adapter/adapter_model.safetensors
        train.input_ids, .labels  [S, 4, 24]  one batch per step
        train.losses              [S]         before each update
        train.grad_norms          [S]         global L2 norm before clipping
        train.lrs                 [S]         used by each update
        train.final.<key>                     adapter after the last update
OUT/sentencepiece/: tokenizer.model and expected.json, a list of {"text", "ids"} without BOS and EOS.
"""

import argparse
import io
import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

# Plain kernels on one thread: which CPU this runs on and how many cores it has must not show in the files.
# torch, MKL and OpenMP read these once, when they are loaded.
os.environ.update(
    OMP_NUM_THREADS="1",
    ATEN_CPU_CAPABILITY="default",
    MKL_CBWR="COMPATIBLE",
    CUDA_VISIBLE_DEVICES="",
    HF_HUB_OFFLINE="1",
)

import peft
import sentencepiece
import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import save_file

REPOSITORY = Path(__file__).resolve().parents[2]
NO_TARGET = -100

BATCH, SEQUENCE = 2, 37
# Unequal prompts, so that a mean of the rows' means differs from the mean over all supervised tokens.
PROMPT_LENGTHS = (5, 11)

TRAIN_STEPS, TRAIN_BATCH, TRAIN_SEQUENCE = 20, 4, 24
TRAINING = {
    "optimizer": "adamw",
    "steps": TRAIN_STEPS,
    "learning_rate": 5e-3,
    "beta1": 0.9,
    "beta2": 0.999,
    "epsilon": 1e-8,
    "weight_decay": 0.01,
    "max_grad_norm": 1.0,
    "warmup_steps": 3,
}

ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
FEED_FORWARD = ["gate_proj", "up_proj", "down_proj"]


@dataclass(frozen=True)
class Case:
    name: str
    seed: int
    config: transformers.PretrainedConfig
    stored_as: torch.dtype
    shard_size: str
    target_modules: list[str]
    use_rslora: bool
    schedule: str
    adapter_size: float = 1.0
    lora_settings: dict = field(default_factory=dict)  # of LoraConfig
    method: peft.PeftConfig | None = None  # in place of LoRA


CASES = [
    Case(
        name="llama",
        seed=1,
        config=transformers.LlamaConfig(
            vocab_size=160,
            hidden_size=64,
            intermediate_size=112,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=256,
            rms_norm_eps=1e-5,
            rope_theta=10000.0,
            tie_word_embeddings=False,
        ),
        stored_as=torch.float32,
        shard_size="1GB",
        target_modules=ATTENTION + FEED_FORWARD,
        use_rslora=False,
        schedule="cosine",
    ),
    # Of the 8 rotary frequencies the scaling keeps the first, blends the second and divides the other six by 8, so
    # all three branches show within 37 positions.
    Case(
        name="llama3_rope",
        seed=2,
        config=transformers.LlamaConfig(
            vocab_size=160,
            hidden_size=64,
            intermediate_size=112,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=512,
            rms_norm_eps=1e-5,
            rope_theta=500000.0,
            rope_scaling={
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            },
            tie_word_embeddings=True,
        ),
        stored_as=torch.bfloat16,
        shard_size="80KB",
        target_modules=["q_proj", "v_proj", "down_proj"],
        use_rslora=False,
        schedule="linear",
        adapter_size=0.15,  # makes the gradients of the training run fall on both sides of max_grad_norm
    ),
    # A vocabulary and an intermediate size that no vector width divides: a kernel that forgets its tail fails here.
    Case(
        name="qwen25",
        seed=3,
        config=transformers.Qwen2Config(
            vocab_size=131,
            hidden_size=48,
            intermediate_size=90,
            num_hidden_layers=2,
            num_attention_heads=6,
            num_key_value_heads=2,
            max_position_embeddings=256,
            rms_norm_eps=1e-6,
            rope_theta=1000000.0,
            tie_word_embeddings=True,
        ),
        stored_as=torch.float16,
        shard_size="1GB",
        target_modules=ATTENTION + FEED_FORWARD,
        use_rslora=True,
        schedule="constant",
    ),
]


def make_schedule(name: str, optimizer: torch.optim.Optimizer):
    warmup = TRAINING["warmup_steps"]
    if name == "cosine":
        return transformers.get_cosine_schedule_with_warmup(optimizer, warmup, TRAIN_STEPS)
    if name == "linear":
        return transformers.get_linear_schedule_with_warmup(optimizer, warmup, TRAIN_STEPS)
    return transformers.get_constant_schedule_with_warmup(optimizer, warmup)


def write_backbone(case: Case, directory: Path) -> None:
    """Random weights, wide enough that the logits spread by about one; norms around 1, biases clearly not 0."""
    model = transformers.AutoModelForCausalLM.from_config(case.config)
    generator = torch.Generator().manual_seed(case.seed)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith(("norm.weight", "ln_1.weight", "ln_2.weight", "ln_f.weight")):
                parameter.copy_(1 + 0.2 * noise)
            elif name.endswith(".bias"):
                parameter.copy_(0.3 * noise)
            else:
                parameter.copy_(0.13 * noise)
    model.to(case.stored_as).save_pretrained(directory, max_shard_size=case.shard_size)
    (directory / "generation_config.json").unlink(missing_ok=True)


def load_backbone(directory: Path):
    """The weights as rounded on disk, computed with in f32."""
    return transformers.AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, attn_implementation="eager"
    ).eval()


def write_adapter(case: Case, backbone_directory: Path, directory: Path) -> None:
    config = case.method or LoraConfig(
        task_type="CAUSAL_LM",
        r=4,
        lora_alpha=8,
        lora_dropout=0.0,
        target_modules=case.target_modules,
        use_rslora=case.use_rslora,
        **case.lora_settings,
        init_lora_weights=False,  # leaves B random; the usual zero B would hide a wrong A, a wrong scale and dA
    )
    torch.manual_seed(case.seed + 100)
    model = get_peft_model(load_backbone(backbone_directory), config)
    with torch.no_grad():
        for parameter in adapter_parameters(model).values():
            parameter.mul_(case.adapter_size)
    model.save_pretrained(directory)
    (directory / "README.md").unlink()

    # PEFT writes target_modules in the order of a set and the backbone's path on this machine.
    config_file = directory / "adapter_config.json"
    stored = json.loads(config_file.read_text())
    if case.target_modules:
        stored["target_modules"] = case.target_modules
    if "feedforward_modules" in stored:
        stored["feedforward_modules"] = sorted(stored["feedforward_modules"])
    stored["base_model_name_or_path"] = None
    write_json(config_file, stored)


def load_adapter(backbone_directory: Path, directory: Path) -> PeftModel:
    prompts = peft.PeftConfig.from_pretrained(directory).is_prompt_learning
    model = PeftModel.from_pretrained(load_backbone(backbone_directory), directory, is_trainable=not prompts).eval()
    if prompts:  # which PEFT loads to compute with alone
        model.prompt_encoder.requires_grad_(True)
    return model


def adapter_parameters(model: PeftModel) -> dict[str, torch.nn.Parameter]:
    """Trainable tensors by the key they have in adapter_model.safetensors, where PEFT leaves out the adapter's name."""
    return {
        stored_name(name): parameter for name, parameter in model.named_parameters() if parameter.requires_grad
    }


def stored_name(name: str) -> str:
    name = name.replace(".default", "").replace("lora_magnitude_vector.weight", "lora_magnitude_vector")
    return "prompt_embeddings" if name == "prompt_encoder.embedding.weight" else name


def token_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    targets = labels[:, 1:].reshape(-1)
    predictions = logits[:, :-1].reshape(-1, logits.shape[-1])
    total = torch.nn.functional.cross_entropy(predictions, targets, ignore_index=NO_TARGET, reduction="sum")
    return total / (targets != NO_TARGET).sum()


def probe_batch(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(case.seed + 200)
    input_ids = torch.randint(0, case.config.vocab_size, (BATCH, SEQUENCE), generator=generator)
    labels = input_ids.clone()
    for row, length in enumerate(PROMPT_LENGTHS):
        labels[row, :length] = NO_TARGET
    return input_ids, labels


def training_batches(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows that count upwards by 1, 2 or 3 around a ring of 24 tokens: soon learned from the previous tokens."""
    generator = torch.Generator().manual_seed(case.seed + 300)
    shape = (TRAIN_STEPS, TRAIN_BATCH, 1)
    start = torch.randint(0, 24, shape, generator=generator)
    stride = torch.randint(1, 4, shape, generator=generator)
    prompt_length = torch.randint(1, 7, shape, generator=generator)
    position = torch.arange(TRAIN_SEQUENCE)
    input_ids = 10 + (start + stride * position) % 24
    labels = torch.where(position < prompt_length, NO_TARGET, input_ids)
    return input_ids, labels


def probe(case: Case, directory: Path) -> dict[str, torch.Tensor]:
    input_ids, labels = probe_batch(case)
    with torch.no_grad():
        logits = load_backbone(directory)(input_ids=input_ids).logits
    model = load_adapter(directory, directory / "adapter")
    adapter_logits = model(input_ids=input_ids).logits
    loss = token_loss(adapter_logits, labels)
    loss.backward()
    return {
        "input_ids": input_ids,
        "labels": labels,
        "logits": logits,
        "adapter_logits": adapter_logits.detach(),
        "loss": loss.detach().reshape(1),
        **{f"grad.{key}": parameter.grad for key, parameter in adapter_parameters(model).items()},
    }


def train(case: Case, directory: Path) -> dict[str, torch.Tensor]:
    model = load_adapter(directory, directory / "adapter")
    parameters = adapter_parameters(model)
    optimizer = torch.optim.AdamW(
        parameters.values(),
        lr=TRAINING["learning_rate"],
        betas=(TRAINING["beta1"], TRAINING["beta2"]),
        eps=TRAINING["epsilon"],
        weight_decay=TRAINING["weight_decay"],
        foreach=False,
    )
    schedule = make_schedule(case.schedule, optimizer)
    all_input_ids, all_labels = training_batches(case)
    losses, grad_norms, lrs = [], [], []
    for input_ids, labels in zip(all_input_ids, all_labels, strict=True):
        optimizer.zero_grad()
        loss = token_loss(model(input_ids=input_ids).logits, labels)
        loss.backward()
        grad_norms.append(torch.nn.utils.clip_grad_norm_(parameters.values(), TRAINING["max_grad_norm"]).item())
        losses.append(loss.item())
        lrs.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return {
        "train.input_ids": all_input_ids,
        "train.labels": all_labels,
        "train.losses": torch.tensor(losses),
        "train.grad_norms": torch.tensor(grad_norms),
        "train.lrs": torch.tensor(lrs),
        **{f"train.final.{key}": parameter.detach() for key, parameter in parameters.items()},
    }


def library_versions() -> dict[str, str]:
    return {
        "torch": torch.__version__.split("+")[0],  # the rest names the build, which must not show in the files
        "transformers": transformers.__version__,
        "peft": peft.__version__,
    }


def write_json(path: Path, value) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def fresh_directory(path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def make_case(case: Case, out: Path) -> None:
    directory = fresh_directory(out / case.name)
    write_backbone(case, directory)
    write_adapter(case, directory, directory / "adapter")
    tensors = {**probe(case, directory), **train(case, directory)}
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, directory / "expected.safetensors")
    write_json(
        directory / "expected.json",
        {
            "training": {
                **TRAINING,
                "schedule": case.schedule,
                "schedule_function": f"transformers.get_{case.schedule}_schedule_with_warmup",
            },
            "versions": library_versions(),
        },
    )
    losses = tensors["train.losses"]
    print(f"{case.name}: probe loss {tensors['loss'].item():.4f}, training loss {losses[0]:.4f} -> {losses[-1]:.4f}")


SENTENCEPIECE_CORPUS = """\
The loom holds many threads, and every thread keeps its own colour.
A weaver who changes one thread does not change the loom.
Three threads over, two threads under, and the pattern comes back again.
When the shuttle rests, another weaver takes the bench and the loom never waits.
Each weaver pays for 12 hours and gets 34 rows of cloth, or 567 rows by the end of the week.
The cost of a row is not the cost of the cloth: 8 rows at 90 coins each make 720 coins.
"What is the pattern?" asked the child. "It is whatever stays the same," said the weaver.
Short threads are tied together (end to end) so that no part of the loom is left empty.
They waited, then they wove; they wove, then they rested.
Un café près de la rivière, où les tisserands se réunissent.
Über der Brücke hängt ein blaues Tuch.
""".splitlines()

SENTENCEPIECE_PROBES = [
    "",
    "a",
    "the",
    "The loom holds many threads.",
    " the weaver",
    "the weaver ",
    "  two  spaces   three",
    "   ",
    "threads\nand\tpatterns\r\n",
    "x = 1234567890;",
    "WEAVER weaver WeAvEr",
    "the thread, the threads, the threading!",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "café près de la Brücke",
    "cafe\u0301",
    "naïve façade",
    "織物 и ткань",
    "loom 🧵 thread 🧶🧶",
    "▁the▁loom",
    "non\u00a0breaking \u200bzero width",
    "<s> </s> <unk> <0x41>",
    '"It is whatever stays the same," said the weaver (again).',
]


def make_sentencepiece(out: Path) -> None:
    """A Llama-like BPE model: no normalization, a leading space put before the text, unknown characters as bytes.

    256 of the pieces are the bytes; what is left after them and the 3 control pieces are characters and merges.
    """
    directory = fresh_directory(out / "sentencepiece")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCEPIECE_CORPUS),
        model_writer=model,
        model_type="bpe",
        vocab_size=448,
        byte_fallback=True,
        character_coverage=1.0,
        split_digits=True,
        normalization_rule_name="identity",
        add_dummy_prefix=True,
        remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True,
        unk_id=0,
        bos_id=1,
        eos_id=2,
        pad_id=-1,
        num_threads=1,
        minloglevel=2,
    )
    (directory / "tokenizer.model").write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    cases = [{"text": text, "ids": processor.encode(text)} for text in SENTENCEPIECE_PROBES]
    lines = [json.dumps(case) for case in cases]
    (directory / "expected.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    print(f"sentencepiece: {processor.vocab_size()} pieces, {len(SENTENCEPIECE_PROBES)} texts")


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the golden files that the C++ tests are held against.")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "tests" / "golden", help="default: %(default)s")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for case in CASES:
        make_case(case, arguments.out)
    make_sentencepiece(arguments.out)


if __name__ == "__main__":
    main()
