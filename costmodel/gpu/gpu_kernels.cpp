#include "costmodel/gpu/gpu_kernels.h"

namespace braid::costmodel {
namespace {

// AdamW in f32: reads the gradient, reads and writes the parameter and both moments.
constexpr double kOptimizerBytes = 7 * 4;

class Builder {
 public:
  Builder(DataType type, GpuKernels& kernels) : type_(activation_type(type)), kernels_(kernels) {}

  void product(std::int64_t rows, std::int64_t in, std::int64_t out, double count = 1) {
    GpuKernel& kernel = kernels_.emplace_back();
    kernel.kind = GpuKernel::Kind::product;
    kernel.product = {rows, in, out};
    kernel.bytes = kernel.product.bytes(type_);
    kernel.count = count;
  }

  /// Dropout, or its way back: numbers read and written, and a mask.
  void dropout(std::int64_t tokens, std::int64_t in, double count) {
    stream_bytes(StreamKind::add, static_cast<double>(tokens * in * (2 * bytes_of(type_) + kMaskBytes)), count);
  }

  /// X and A read, the low-rank product written; with dropout also the masked X, which the gradient of A reads, and the
  /// mask.
  void fused_down(std::int64_t tokens, std::int64_t in, std::int64_t rank, bool drops, double count) {
    const std::int64_t masked = drops ? in * (bytes_of(type_) + kMaskBytes) : 0;
    const std::int64_t once = tokens * ((in + rank) * bytes_of(type_) + masked);
    stream_bytes(StreamKind::add, static_cast<double>(once + in * rank * bytes_of(type_)), count);
  }

  /// A kernel that moves `numbers_a_token` · tokens numbers of this type.
  void stream(StreamKind kind, std::int64_t tokens, std::int64_t numbers_a_token, double count = 1) {
    stream_bytes(kind, static_cast<double>(bytes_of(type_)) * static_cast<double>(tokens * numbers_a_token), count);
  }
  void stream_bytes(StreamKind kind, double bytes, double count = 1) {
    GpuKernel& kernel = kernels_.emplace_back();
    kernel.stream = kind;
    kernel.bytes = bytes;
    kernel.count = count;
  }

  void attention(GpuKernel::Kind kind, double flops, double bytes) {
    GpuKernel& kernel = kernels_.emplace_back();
    kernel.kind = kind;
    kernel.flops = flops;
    kernel.bytes = bytes;
  }

 private:
  DataType type_;
  GpuKernels& kernels_;
};

/// A frozen layer of int8 weights as LLM.int8() runs it (Dettmers et al. 2022): scales of X's rows, X quantized and
/// laid out anew, the product, its scaling back, and the few columns of outliers multiplied apart and added. Going back
/// the weights are widened first: copied in 16 bits, then scaled there.
void int8_linear(const OperatorCall& call, Builder& builder) {
  const auto [in, out, u0, u1] = call.shape;
  const std::int64_t tokens = call.tokens;
  if (call.pass != Pass::forward) {
    builder.stream_bytes(StreamKind::add, 3 * static_cast<double>(in * out));
    builder.stream_bytes(StreamKind::add, 4 * static_cast<double>(in * out));
    builder.product(tokens, out, in);
    return;
  }
  constexpr std::int64_t kOutlierColumns = 8;
  builder.stream(StreamKind::add, tokens, in);
  builder.stream(StreamKind::add, tokens, in + in / 2);
  builder.stream(StreamKind::add, tokens, in);
  builder.product(tokens, in, out);
  builder.stream(StreamKind::add, tokens, 3 * out);
  builder.product(tokens, kOutlierColumns, out);
  builder.stream(StreamKind::add, tokens, 3 * out);
}

/// What DoRA and VeRA do beside LoRA's kernels. DoRA scales the product and LoRA's, and its magnitude's gradient reads
/// both; with dropout the frozen product is done again of the masked inputs. VeRA scales between A and B and after B.
void other_adapter_work(const OperatorCall& call, std::int64_t out, Builder& builder) {
  const std::int64_t tokens = call.tokens, in = call.shape[0], rank = call.shape[2];
  const auto times = static_cast<double>(call.shape[3]);
  const bool forward = call.pass == Pass::forward;
  if (call.op == Operator::dora || call.op == Operator::dora_dropout) {
    builder.stream(StreamKind::add, tokens, (forward ? 4 : 5) * out, times);
    if (call.op == Operator::dora_dropout) builder.product(tokens, forward ? in : out, forward ? out : in, times);
  }
  if (call.op == Operator::vera || call.op == Operator::vera_dropout) {
    builder.stream(StreamKind::add, tokens, (forward ? 2 : 4) * rank, times);
    builder.stream(StreamKind::add, tokens, (forward ? 2 : 4) * out, times);
  }
}

/// A product with a vector, and going back with another and the vector's own gradient.
void scaling_adapter(const OperatorCall& call, Builder& builder) {
  builder.stream(StreamKind::add, call.tokens, (call.pass == Pass::forward ? 2 : 4) * call.shape[0]);
}

/// {H, H, width between}.
void bottleneck_adapter(const OperatorCall& call, Builder& builder) {
  const std::int64_t tokens = call.tokens, hidden = call.shape[0], between = call.shape[2];
  builder.product(tokens, hidden, between);
  builder.product(tokens, between, hidden);
  builder.stream(StreamKind::activation, tokens, (call.pass == Pass::forward ? 2 : 3) * between);
  builder.stream(StreamKind::add, tokens, 3 * hidden);
  if (call.pass == Pass::forward) return;
  builder.product(between, tokens, hidden);
  builder.product(hidden, tokens, between);
}

/// PEFT's SHiRA: the difference is put into a matrix as large as the weight, which the product reads instead, and going
/// back the whole weight's gradient is made.
void difference_adapter(const OperatorCall& call, Builder& builder) {
  const auto [in, out_sum, numbers, modules] = call.shape;
  builder.stream_bytes(StreamKind::add, 3 * static_cast<double>(in) * static_cast<double>(out_sum) * 2);
  builder.stream_bytes(StreamKind::add, 12 * static_cast<double>(numbers));
  if (call.pass != Pass::forward) builder.product(out_sum, call.tokens, in);
}

/// Shape {in, sum of out, rank, modules}: each module runs its own kernels.
void separate_adapter(const OperatorCall& call, Builder& builder) {
  const auto [in, out_sum, rank, modules] = call.shape;
  const std::int64_t tokens = call.tokens, out = out_sum / modules;
  const auto times = static_cast<double>(modules);
  const auto dropout = [&] {
    if (call.op != Operator::lora && call.op != Operator::dora && call.op != Operator::vera)
      builder.dropout(tokens, in, times);
  };
  other_adapter_work(call, out, builder);
  if (call.pass == Pass::forward) {
    dropout();
    builder.product(tokens, in, rank, times);
    builder.product(tokens, rank, out, times);
    builder.stream(StreamKind::add, tokens, 2 * out, times);
    builder.stream(StreamKind::add, tokens, 3 * out, times);
    return;
  }
  builder.stream(StreamKind::add, tokens, 2 * out, times);
  builder.product(rank, tokens, out, times);
  builder.product(tokens, out, rank, times);
  builder.product(rank, tokens, in, times);
  if (call.pass != Pass::backward) return;
  builder.product(tokens, rank, in, times);
  dropout();
  builder.stream(StreamKind::add, tokens, 3 * in, times);
}

/// What the fused kernels add to the frozen layer's product, which `linear` charges: see LoRAFusion, figure 10.
void fused_adapter(const OperatorCall& call, Builder& builder) {
  const auto [in, out_sum, rank, modules] = call.shape;
  const std::int64_t tokens = call.tokens, out = out_sum / modules;
  const auto times = static_cast<double>(modules);
  if (call.pass == Pass::forward) {
    builder.fused_down(tokens, in, rank, call.op == Operator::fused_lora_dropout, times);
    return;
  }
  builder.stream(StreamKind::add, tokens, out + 2 * rank, times);
  builder.product(rank, tokens, in, times);
}

void flash_attention(const OperatorCall& call, DataType type, Builder& builder) {
  const auto [heads, kv_heads, head_dim, unused] = call.shape;
  const auto fresh = static_cast<double>(call.context - call.prefix);
  const double scores = fresh * (static_cast<double>(call.prefix) + (fresh + 1) / 2);
  const bool forward = call.pass == Pass::forward;
  // Two products forward, five backward: scores again, and the gradients of values, probabilities, queries and keys.
  const double flops = (forward ? 2 : 5) * 2 * scores * static_cast<double>(heads * head_dim);
  const std::int64_t passes = forward ? 1 : 2;
  const double traffic =
      static_cast<double>(bytes_of(activation_type(type))) * static_cast<double>(passes * head_dim) *
      (2 * fresh * static_cast<double>(heads) + 2 * static_cast<double>(call.context) * static_cast<double>(kv_heads));
  const auto sequences = static_cast<double>(call.sequences);
  builder.attention(GpuKernel::Kind::attention, sequences * flops, sequences * traffic);
}

/// PyTorch's softmax reads f16 as it is; bf16 is cast before it, and what its way back gives after it.
void eager_attention(const OperatorCall& call, DataType type, Builder& builder) {
  const auto [heads, kv_heads, head_dim, unused] = call.shape;
  const auto rows = static_cast<double>(call.sequences * heads * (call.context - call.prefix));
  const auto keys = static_cast<double>(call.sequences * heads * call.context);
  const double scores = rows * static_cast<double>(call.context);
  const DataType stored = activation_type(type);
  const auto narrow = static_cast<double>(bytes_of(stored));
  constexpr double kWide = bytes_of(DataType::f32);
  // Between scores, and rows or keys of a head's size.
  const auto product = [&] {
    builder.attention(GpuKernel::Kind::batched, 2 * scores * static_cast<double>(head_dim),
                      narrow * (scores + (rows + keys) * static_cast<double>(head_dim)));
  };
  const auto stream = [&](StreamKind kind, double bytes) { builder.stream_bytes(kind, scores * bytes); };
  const auto cast = [&] { stream(StreamKind::add, narrow + kWide); };
  const double softmax_side = stored == DataType::f16 ? narrow : kWide;
  if (call.pass == Pass::forward) {
    product();
    stream(StreamKind::add, 2 * narrow);  // scale
    stream(StreamKind::add, 2 * narrow);  // mask
    if (stored == DataType::bf16) cast();
    stream(StreamKind::norm, softmax_side + kWide);
    if (stored != DataType::f32) cast();
    product();
    return;
  }
  product();  // of values
  product();  // of probabilities
  if (stored != DataType::f32) cast();
  stream(StreamKind::add, 3 * kWide);                  // times the probabilities
  stream(StreamKind::norm, 2 * kWide + softmax_side);  // of the softmax
  if (stored == DataType::bf16) cast();
  stream(StreamKind::add, 2 * narrow);  // of the scale
  product();                            // of queries
  product();                            // of keys
}

/// Final norm, head, cross-entropy in f32, and the way back.
void head_loss(const OperatorCall& call, DataType type, Builder& builder) {
  const auto [hidden, vocabulary, u0, u1] = call.shape;
  const std::int64_t widened = vocabulary * (4 / bytes_of(activation_type(type)));
  builder.stream(StreamKind::norm, call.tokens, 2 * hidden);
  builder.product(call.tokens, hidden, vocabulary);
  builder.stream(StreamKind::add, call.tokens, vocabulary + widened);  // to f32
  builder.stream(StreamKind::add, call.tokens, 2 * widened);           // log-softmax
  builder.stream(StreamKind::add, call.tokens, widened + vocabulary);  // its gradient
  builder.product(call.tokens, vocabulary, hidden);
  builder.stream(StreamKind::norm, call.tokens, 3 * hidden);
}

}  // namespace

GpuKernels gpu_kernels(const OperatorCall& call, DataType type, AttentionKind attention) {
  GpuKernels kernels;
  Builder builder(type, kernels);
  if (call.tokens <= 0) return kernels;
  const bool forward = call.pass == Pass::forward;
  switch (call.op) {
    case Operator::embedding:
      builder.stream(StreamKind::gather, call.tokens, 2 * call.shape[1]);
      break;
    case Operator::rms_norm:
    case Operator::layer_norm:
      builder.stream(StreamKind::norm, call.tokens, (forward ? 2 : 3) * call.shape[0]);
      // To the gradient that went past the norm.
      if (!forward) builder.stream(StreamKind::add, call.tokens, 3 * call.shape[0]);
      break;
    case Operator::head_norm:
      // Queries and keys one after the other.
      builder.stream(StreamKind::norm, call.tokens, (forward ? 2 : 3) * call.shape[0] * call.shape[2]);
      builder.stream(StreamKind::norm, call.tokens, (forward ? 2 : 3) * call.shape[1] * call.shape[2]);
      break;
    case Operator::linear:
      if (type == DataType::int8) {
        int8_linear(call, builder);
      } else if (forward) {
        builder.product(call.tokens, call.shape[0], call.shape[1]);
      } else if (call.pass == Pass::parameters) {
        builder.product(call.shape[0], call.tokens, call.shape[1]);
      } else {
        builder.product(call.tokens, call.shape[1], call.shape[0]);
      }
      break;
    case Operator::lora:
    case Operator::lora_dropout:
    case Operator::dora:
    case Operator::dora_dropout:
    case Operator::vera:
    case Operator::vera_dropout:
      separate_adapter(call, builder);
      break;
    case Operator::ia3:
      scaling_adapter(call, builder);
      break;
    case Operator::bottleneck:
      bottleneck_adapter(call, builder);
      break;
    case Operator::diff_pruning:
      difference_adapter(call, builder);
      break;
    case Operator::fused_lora:
    case Operator::fused_lora_dropout:
      fused_adapter(call, builder);
      break;
    case Operator::split_gradient:
      // The derivative of the split: each task's gradient put into a tensor of the whole input's size, and those added.
      builder.stream(StreamKind::add, call.tokens, 2 * call.shape[0]);
      break;
    case Operator::rope:
      builder.stream(StreamKind::rope, call.tokens, 2 * call.shape[0] * call.shape[1]);
      break;
    case Operator::attention:
      (attention == AttentionKind::flash ? flash_attention : eager_attention)(call, type, builder);
      break;
    case Operator::swiglu:
      builder.stream(StreamKind::activation, call.tokens, (forward ? 3 : 5) * call.shape[0]);
      break;
    case Operator::gelu:
      builder.stream(StreamKind::activation, call.tokens, (forward ? 2 : 3) * call.shape[0]);
      break;
    case Operator::residual:
      builder.stream(StreamKind::add, call.tokens, 3 * call.shape[0]);
      break;
    case Operator::head_loss:
      head_loss(call, type, builder);
      break;
    case Operator::squared_norm:
      builder.stream_bytes(StreamKind::add, 4 * static_cast<double>(call.tokens));
      break;
    case Operator::adamw:
      builder.stream_bytes(StreamKind::add, kOptimizerBytes * static_cast<double>(call.tokens));
      break;
    case Operator::copy:
      builder.stream_bytes(StreamKind::add, static_cast<double>(call.tokens));
      break;
    case Operator::empty_kernel:
      builder.stream_bytes(StreamKind::add, 1);
      break;
    case Operator::dispatch:
    case Operator::launch:
    case Operator::send_recv:
    case Operator::all_reduce:
    case Operator::reduce_scatter:
    case Operator::all_gather:
      break;
  }
  return kernels;
}

}  // namespace braid::costmodel
