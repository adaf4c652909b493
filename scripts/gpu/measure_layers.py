"""Measures, on the first GPU, what steps of LoRA fine-tuning with transformers and PEFT take and hold, layer by layer,
and single operators and products that a cost model is made of. Writes CSV files, a row at a time.

usage: measure_layers.py --out FOLDER [--seconds LAYERS,OPERATORS,PRODUCTS] [--tiny]

layers.csv     forward, backward and memory of a few decoder layers with an adapter on every linear layer; of two
               depths, so that what lies outside the layers can be told apart
operators.csv  attention, norms, the activation, the loss and AdamW by themselves
products.csv   a frozen linear layer with adapters: apart, as PEFT runs them, and in one product of more depth
"""

import argparse
import csv
import gc
import json
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

SHAPES = {  # hidden, intermediate, heads, key/value heads, vocabulary, bias of q, k and v
    "llama2-7b": (4096, 11008, 32, 32, 32000, False),
    "llama3.1-8b": (4096, 14336, 32, 8, 128256, False),
    "qwen2.5-32b": (5120, 27648, 40, 8, 152064, True),
    "llama3.1-70b": (8192, 28672, 64, 8, 128256, False),
}
TINY = {"tiny": (64, 128, 4, 2, 500, False)}


def note(text):
    print(text, file=sys.stderr, flush=True)


class Rows:
    """A CSV file whose rows are written as they come, for so many seconds."""

    def __init__(self, path, columns, seconds):
        self.file = open(path, "w", newline="")
        self.writer = csv.DictWriter(self.file, columns + ["error"], restval="")
        self.writer.writeheader()
        self.end = time.monotonic() + seconds
        self.count = 0

    def measure(self, known, function):
        """Adds the row of what is known and what the function tells, or why it failed. False when time is up."""
        if time.monotonic() > self.end:
            return False
        try:
            row = known | function()
        except Exception as failure:  # out of memory, or not supported: the row says so
            row = known | {"error": f"{type(failure).__name__}: {str(failure).splitlines()[0][:120]}"}
        gc.collect()
        torch.cuda.empty_cache()
        self.writer.writerow(row)
        self.file.flush()
        self.count += 1
        return True


def synchronize():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


class Clock:
    """Seconds of the GPU between two places of a program."""

    def __init__(self):
        self.on_gpu = torch.cuda.is_available()

    def mark(self):
        if not self.on_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, a, b):
        return a.elapsed_time(b) / 1e3 if self.on_gpu else b - a


def median_and_spread(times):
    times = sorted(times)
    quarter = len(times) // 4
    middle = statistics.median(times)
    return middle, (times[-1 - quarter] - times[quarter]) / middle


def gpu_time(work, copies, runs=20):
    """Median seconds of work(i), i going round the copies of its operands so that no cache serves them; of a CUDA graph of
    several in a row where it can be captured, so that the host keeps nobody waiting."""
    for i in range(3):
        work(i % copies)
    synchronize()
    clock = Clock()
    if not clock.on_gpu:
        start = clock.mark()
        work(0)
        return clock.between(start, clock.mark()), 0.0
    start = clock.mark()
    work(0)
    end = clock.mark()
    synchronize()
    inner = max(1, min(64, int(5e-4 / max(clock.between(start, end), 1e-6))))
    run = lambda: [work(i % copies) for i in range(inner)]
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
            run()
        run = graph.replay
        run()
    except Exception:
        synchronize()
    times = []
    for _ in range(runs):
        start = clock.mark()
        run()
        end = clock.mark()
        synchronize()
        times.append(clock.between(start, end) / inner)
    return median_and_spread(times)


# Layers


def build(shape, layers, attention, adapters, device, dtype):
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

    hidden, intermediate, heads, kv_heads, vocabulary, bias = shape
    config = (Qwen2Config if bias else LlamaConfig)(
        hidden_size=hidden, intermediate_size=intermediate, num_attention_heads=heads, num_key_value_heads=kv_heads,
        vocab_size=vocabulary, num_hidden_layers=layers, max_position_embeddings=16384, use_cache=False,
        tie_word_embeddings=False)
    config._attn_implementation = attention
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    with torch.device(device):
        model = (Qwen2ForCausalLM if bias else LlamaForCausalLM)(config)
    torch.set_default_dtype(before)
    lora = LoraConfig(r=16, lora_alpha=32, lora_dropout=adapters["dropout"], target_modules=adapters["targets"])
    model = get_peft_model(model, lora, autocast_adapter_dtype=adapters["dtype"] == "f32").to(device)
    return model.train()


def recompute_selectively(model):
    """Attention's core and what the feed-forward makes between its products are computed again from q, k, v and from the
    results of gate and up, which are kept as all else is."""
    from torch.utils.checkpoint import checkpoint
    from transformers.models.llama import modeling_llama
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    core = ALL_ATTENTION_FUNCTIONS["sdpa"]

    def attend(module, query, key, value, mask, **rest):
        inner = lambda q, k, v: core(module, q, k, v, mask, **rest)[0]
        return checkpoint(inner, query, key, value, use_reentrant=False), None

    ALL_ATTENTION_FUNCTIONS.register("sdpa_again", attend)
    model.config._attn_implementation = "sdpa_again"
    for module in model.modules():
        if type(module).__name__ in ("LlamaMLP", "Qwen2MLP"):

            def forward(x, self=module):
                middle = lambda gate, up: self.act_fn(gate) * up
                return self.down_proj(checkpoint(middle, self.gate_proj(x), self.up_proj(x), use_reentrant=False))

            module.forward = forward


def measure_step(model, batch, sequence, vocabulary, device, profile):
    tokens = torch.randint(vocabulary, (batch, sequence), device=device)
    clock, result = Clock(), {}
    forwards, backwards = [], []
    cuda = clock.on_gpu
    for run in range(8):
        model.zero_grad(set_to_none=True)
        synchronize()
        if cuda:
            torch.cuda.reset_peak_memory_stats()
            held = torch.cuda.memory_allocated()
        begin = clock.mark()
        loss = model(input_ids=tokens, labels=tokens).loss
        middle = clock.mark()
        if cuda:
            kept = torch.cuda.memory_allocated() - held
        loss.backward()
        end = clock.mark()
        synchronize()
        if run >= 2:
            forwards.append(clock.between(begin, middle))
            backwards.append(clock.between(middle, end))
        if cuda:
            result |= {"bytes_before": held, "bytes_kept": kept,
                       "bytes_peak": torch.cuda.max_memory_allocated() - held}
        del loss
    result["forward_seconds"], result["forward_spread"] = median_and_spread(forwards)
    result["backward_seconds"], result["backward_spread"] = median_and_spread(backwards)
    if profile and cuda:
        try:
            result |= kernel_times(model, tokens)
        except Exception as failure:
            note(f"no kernel times: {type(failure).__name__}: {failure}")
    return result


def kernel_times(model, tokens):
    """What the kernels of one Forward and one Backward take, however long the GPU waits for the host between them."""
    result = {}
    forward = lambda: model(input_ids=tokens, labels=tokens).loss
    backward = forward().backward
    for name, run in (("backward", backward), ("forward", forward)):
        synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            run()
            synchronize()
        kernels = [event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA]
        result[f"{name}_kernel_seconds"] = sum(event.device_time_total for event in kernels) / 1e6
        result[f"{name}_kernels"] = len(kernels)
    model.zero_grad(set_to_none=True)
    return result


ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
PLAIN = {"targets": ALL, "dropout": 0.0, "dtype": "bf16"}


def layer_settings(tiny):
    """Backbone, adapters, attention, recomputation and sizes: what tells most comes first."""
    if tiny:
        for recompute in ("none", "full", "selective"):
            yield "tiny", (1, 2), PLAIN, "sdpa", recompute, [(1, 32), (2, 32)]
        yield "tiny", (1, 2), PLAIN, "eager", "none", [(1, 32)]
        return
    few = [(1, 2048), (4, 2048), (2, 4096), (4, 512)]
    for recompute in ("none", "full", "selective"):
        yield "llama3.1-8b", (2, 6), PLAIN, "sdpa", recompute, few + [(1, 512), (16, 512), (1, 8192), (1, 256)]
    for recompute in ("none", "full", "selective"):
        yield "llama3.1-70b", (1, 3), PLAIN, "sdpa", recompute, few
    for recompute in ("none", "full", "selective"):
        yield "qwen2.5-32b", (1, 3), PLAIN, "sdpa", recompute, few
    yield "llama2-7b", (2, 6), PLAIN, "sdpa", "none", few
    yield "llama3.1-8b", (2, 6), PLAIN, "eager", "none", [(1, 2048), (4, 512)]
    yield "llama3.1-8b", (2, 6), PLAIN | {"dropout": 0.1}, "sdpa", "none", few
    yield "llama3.1-8b", (2, 6), PLAIN | {"dtype": "f32"}, "sdpa", "none", few
    yield "llama3.1-8b", (2, 6), PLAIN | {"targets": ["q_proj", "v_proj"]}, "sdpa", "none", few


def measure_layers(folder, seconds, tiny, device):
    rows = Rows(folder / "layers.csv", [
        "backbone", "layers", "batch", "sequence", "recompute", "attention", "adapter_dtype", "dropout", "targets",
        "forward_seconds", "forward_spread", "backward_seconds", "backward_spread", "forward_kernel_seconds",
        "forward_kernels", "backward_kernel_seconds", "backward_kernels", "bytes_before", "bytes_kept", "bytes_peak"],
        seconds)
    for name, depths, adapters, attention, recompute, sizes in layer_settings(tiny):
        shape = (TINY if tiny else SHAPES)[name]
        for layers in depths:
            try:
                model = build(shape, layers, attention, adapters, device, torch.float32 if tiny else torch.bfloat16)
            except Exception as failure:
                note(f"layers: {name} of {layers}: {type(failure).__name__}: {failure}")
                continue
            if recompute == "full":
                model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
                model.enable_input_require_grads()
            if recompute == "selective":
                recompute_selectively(model.base_model.model)
            for batch, sequence in sizes:
                known = {"backbone": name, "layers": layers, "batch": batch, "sequence": sequence,
                         "recompute": recompute, "attention": attention, "adapter_dtype": adapters["dtype"],
                         "dropout": adapters["dropout"], "targets": len(adapters["targets"])}
                step = lambda: measure_step(model, batch, sequence, shape[4], device, layers == depths[1])
                if not rows.measure(known, step):
                    note(f"layers: time is up after {rows.count} rows")
                    return
            del model
            gc.collect()
            torch.cuda.empty_cache()
        note(f"layers: {name} {recompute} {attention} done, {rows.count} rows")


# Operators


def tensors(count, *shape, device, dtype):
    return [torch.randn(*shape, device=device, dtype=dtype) * 0.5 for _ in range(count)]


def copies_for(numbers, tiny, bytes_each=2):
    """So many that together they are several times an L2 cache of 50 MB."""
    return 1 if tiny else max(2, min(16, int(2e8 / (numbers * bytes_each)) + 1))


def measure_operators(folder, seconds, tiny, device):
    dtype = torch.float32 if tiny else torch.bfloat16
    rows = Rows(folder / "operators.csv",
                ["operator", "implementation", "pass", "shape", "tokens", "sequences", "seconds", "spread"], seconds)

    def add(operator, implementation, direction, shape, tokens, sequences, make):
        def run():
            work, copies = make()
            middle, spread = gpu_time(work, copies)
            return {"seconds": middle, "spread": spread}

        known = {"operator": operator, "implementation": implementation, "pass": direction, "shape": shape,
                 "tokens": tokens, "sequences": sequences}
        return rows.measure(known, run)

    def attention(heads, kv_heads, width, batch, length, backend, direction):
        def make():
            from torch.nn.attention import SDPBackend, sdpa_kernel

            kinds = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION, "math": SDPBackend.MATH}
            copies = copies_for(batch * heads * length * width * 3, tiny)
            needs = direction == "backward"
            q, k, v = ([t.requires_grad_(needs) for t in tensors(copies, batch, h, length, width, device=device, dtype=dtype)]
                       for h in (heads, heads, heads))

            def forward(i):
                with sdpa_kernel(kinds[backend]):
                    return F.scaled_dot_product_attention(q[i], k[i], v[i], is_causal=True)

            if not needs:
                return forward, copies
            out = [forward(i) for i in range(copies)]
            gradient = torch.randn_like(out[0])
            return lambda i: torch.autograd.grad(out[i], (q[i], k[i], v[i]), gradient, retain_graph=True), copies

        return make

    cases = [(1, 2048), (4, 2048), (2, 4096), (1, 512), (8, 512), (1, 8192), (16, 512), (1, 16384)]
    shapes = [(4, 2, 16)] if tiny else [(32, 8, 128), (64, 8, 128), (40, 8, 128)]
    for heads, kv_heads, width in shapes:
        for batch, length in [(1, 32)] if tiny else cases:
            for backend in ("math",) if tiny else ("flash", "cudnn"):
                for direction in ("forward", "backward"):
                    if not add("attention", backend, direction, f"{heads}x{width}, key and value heads repeated",
                               batch * length, batch, attention(heads, kv_heads, width, batch, length, backend, direction)):
                        return
    note(f"operators: attention done, {rows.count} rows")

    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    def elementwise(function, inputs, tokens, width, direction):
        def make():
            copies = copies_for(inputs * tokens * width, tiny)
            sets = [tensors(inputs, tokens, width, device=device, dtype=dtype) for _ in range(copies)]
            if direction == "forward":
                with torch.no_grad():
                    return (lambda i: function(*sets[i])), copies
            for one in sets:
                for t in one:
                    t.requires_grad_()
            out = [function(*one) for one in sets]
            gradient = torch.randn_like(out[0])
            return (lambda i: torch.autograd.grad(out[i], sets[i], gradient, retain_graph=True)), copies

        return make

    for tokens in (64,) if tiny else (512, 2048, 8192, 16384):
        for width in (64,) if tiny else (4096, 8192):
            norm = LlamaRMSNorm(width).to(device=device, dtype=dtype)
            for direction in ("forward", "backward"):
                add("rms_norm", "transformers", direction, width, tokens, 1, elementwise(norm, 1, tokens, width, direction))
                add("rms_norm", "torch", direction, width, tokens, 1, elementwise(
                    lambda x: F.rms_norm(x, (x.shape[-1],), norm.weight, 1e-5), 1, tokens, width, direction))
            add("residual", "torch", "forward", width, tokens, 1, elementwise(torch.add, 2, tokens, width, "forward"))
            add("dropout", "torch", "forward", width, tokens, 1,
                elementwise(lambda x: F.dropout(x, 0.1), 1, tokens, width, "forward"))
        for width in (128,) if tiny else (14336, 28672):
            for direction in ("forward", "backward"):
                if not add("swiglu", "silu, product", direction, width, tokens, 1,
                           elementwise(lambda gate, up: F.silu(gate) * up, 2, tokens, width, direction)):
                    return

    def loss(tokens, vocabulary, direction):
        def make():
            logits = tensors(1, tokens, vocabulary, device=device, dtype=dtype)[0].requires_grad_()
            labels = torch.randint(vocabulary, (tokens,), device=device)
            forward = lambda i=0: F.cross_entropy(logits.float(), labels)
            if direction == "forward":
                return forward, 1
            value = forward()
            return (lambda i: torch.autograd.grad(value, logits, retain_graph=True)), 1

        return make

    for tokens, vocabulary in ((64, 500),) if tiny else ((2048, 128256), (8192, 128256), (8192, 32000)):
        for direction in ("forward", "backward"):
            add("cross_entropy", "f32", direction, vocabulary, tokens, 1, loss(tokens, vocabulary, direction))

    def adamw(numbers, kind):
        def make():
            parameters = [torch.nn.Parameter(torch.randn(numbers // 64, device=device)) for _ in range(64)]
            for parameter in parameters:
                parameter.grad = torch.randn_like(parameter)
            optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=kind == "fused", foreach=kind == "foreach")
            return (lambda i: optimizer.step()), 1

        return make

    for numbers in (6400,) if tiny else (10_000_000, 40_000_000, 160_000_000):
        for kind in ("foreach",) if tiny else ("fused", "foreach"):
            add("adamw", kind, "forward", "f32", numbers, 1, adamw(numbers, kind))
    note(f"operators: {rows.count} rows")


# Products


def relative(out, truth):
    return (torch.linalg.norm(out.float() - truth) / torch.linalg.norm(truth)).item()


def measure_products(folder, seconds, tiny, device):
    dtype = torch.float32 if tiny else torch.bfloat16
    rows = Rows(folder / "products.csv", ["variant", "pass", "in", "out", "tokens", "rank", "adapters", "seconds", "spread",
                                          "relative_error"], seconds)
    linears = [(64, 48)] if tiny else [(4096, 4096), (4096, 14336), (14336, 4096), (8192, 8192), (8192, 28672)]
    for tokens in (32,) if tiny else (8192, 2048, 4096, 512, 1024, 16384, 256):
        for inner, outer in linears:
            for rank, adapters in ((16, 1), (64, 1), (16, 8)):
                copies = copies_for(tokens * inner + inner * outer, tiny)
                wide = inner + rank * adapters
                scale = 2.0
                make = lambda count, *shape: tensors(count, *shape, device=device, dtype=dtype)
                weights = [w * inner**-0.5 for w in make(copies, outer, wide)]  # [W | B of all adapters]
                x = make(copies, tokens, wide)  # [x | room for the scaled low-rank rows]
                gradient = make(2, tokens, outer)
                a = make(1, rank * adapters, inner)[0] * inner**-0.5
                share = tokens // adapters
                y = torch.full((tokens, outer), float("nan"), device=device, dtype=dtype)
                dx = torch.full((tokens, inner), float("nan"), device=device, dtype=dtype)
                mask = torch.zeros(tokens, rank * adapters, device=device, dtype=dtype)
                for t in range(adapters):
                    mask[t * share:(t + 1) * share if t + 1 < adapters else tokens, t * rank:(t + 1) * rank] = scale

                def plain(i):
                    torch.mm(x[i][:, :inner], weights[i][:, :inner].T, out=y)

                def peft(i):
                    torch.mm(x[i][:, :inner], weights[i][:, :inner].T, out=y)
                    for t in range(adapters):
                        here = slice(t * share, (t + 1) * share if t + 1 < adapters else tokens)
                        of = slice(t * rank, (t + 1) * rank)
                        low = torch.mm(x[i][here, :inner], a[of].T)
                        y[here] += scale * torch.mm(low, weights[i][:, inner:][:, of].T)

                def dropping(i):
                    torch.mm(x[i][:, :inner], weights[i][:, :inner].T, out=y)
                    low = torch.mm(F.dropout(x[i][:, :inner], 0.1), a.T)
                    y.add_(scale * torch.mm(low, weights[i][:, inner:].T))

                def extended(i):
                    low = torch.mm(x[i][:, :inner], a.T)
                    torch.mul(low, mask, out=x[i][:, inner:])
                    torch.mm(x[i], weights[i].T, out=y)

                def plain_back(i):
                    torch.mm(gradient[i % 2], weights[i][:, :inner], out=dx)

                def peft_back(i):
                    dy = gradient[i % 2]
                    torch.mm(dy, weights[i][:, :inner], out=dx)
                    for t in range(adapters):
                        here = slice(t * share, (t + 1) * share if t + 1 < adapters else tokens)
                        of = slice(t * rank, (t + 1) * rank)
                        low = torch.mm(x[i][here, :inner], a[of].T)
                        scaled = scale * dy[here]
                        torch.mm(scaled.T, low)
                        back = torch.mm(scaled, weights[i][:, inner:][:, of])
                        torch.mm(back.T, x[i][here, :inner])
                        dx[here] += torch.mm(back, a[of])

                stacked = [torch.cat([w[:, :inner], make(1, rank * adapters, inner)[0]]) for w in weights]
                for s in stacked:
                    s[outer:] = a
                dyw = make(2, tokens, outer + rank * adapters)

                def extended_back(i):
                    dy = dyw[i % 2]
                    torch.mul(torch.mm(dy[:, :outer], weights[i][:, inner:]), mask, out=dy[:, outer:])
                    torch.mm(dy, stacked[i], out=dx)
                    torch.mm(dy[:, :outer].T, x[i][:, inner:])
                    torch.mm(dy[:, outer:].T, x[i][:, :inner])

                for variant, direction, work in (
                        ("plain", "forward", plain), ("peft", "forward", peft), ("peft, dropout", "forward", dropping),
                        ("one product", "forward", extended), ("plain", "backward", plain_back),
                        ("peft", "backward", peft_back), ("one product", "backward", extended_back)):
                    if variant == "peft, dropout" and adapters > 1:
                        continue

                    def run():
                        result = {}
                        if direction == "forward" and variant != "peft, dropout":
                            work(0)
                            low = (x[0][:, :inner].float() @ a.float().T) * mask.float()
                            truth = x[0][:, :inner].float() @ weights[0][:, :inner].float().T
                            if variant != "plain":
                                truth += low @ weights[0][:, inner:].float().T
                            result["relative_error"] = relative(y, truth)
                        with torch.no_grad():
                            result["seconds"], result["spread"] = gpu_time(work, copies)
                        return result

                    known = {"variant": variant, "pass": direction, "in": inner, "out": outer, "tokens": tokens,
                             "rank": rank, "adapters": adapters}
                    if not rows.measure(known, run):
                        note(f"products: time is up after {rows.count} rows")
                        return
                del weights, x, gradient, stacked, dyw, y, dx, mask
        note(f"products: {tokens} tokens done, {rows.count} rows")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", default="170,60,70")
    parser.add_argument("--tiny", action="store_true", help="a minute backbone, on the CPU: whether the script runs")
    arguments = parser.parse_args()
    if not arguments.tiny and not torch.cuda.is_available():
        parser.error("no CUDA device; --tiny runs without one")
    arguments.out.mkdir(parents=True, exist_ok=True)
    device = "cpu" if arguments.tiny else "cuda"
    layers, operators, products = (float(text) for text in arguments.seconds.split(","))
    import peft
    import transformers

    machine = {"torch": torch.__version__, "transformers": transformers.__version__, "peft": peft.__version__}
    if device == "cuda":
        machine |= {"gpu": torch.cuda.get_device_name(), "memory": torch.cuda.get_device_properties(0).total_memory,
                    "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
    (arguments.out / "machine.json").write_text(json.dumps(machine, indent=1) + "\n")
    note(json.dumps(machine))
    for section, seconds in ((measure_layers, layers), (measure_operators, operators), (measure_products, products)):
        if seconds > 0:
            if device == "cuda" and section is not measure_layers:
                torch.cuda.set_stream(torch.cuda.Stream())  # what is captured into a graph may not be on the default one
            try:
                section(arguments.out, seconds, arguments.tiny, device)
            except Exception as failure:
                note(f"{section.__name__} ended: {type(failure).__name__}: {failure}")


if __name__ == "__main__":
    main()
