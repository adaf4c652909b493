#include "costmodel/roofline.h"

#include <algorithm>

#include "base/error.h"
#include "costmodel/gemm_model.h"

namespace braid::costmodel {
namespace {

// FlashAttention-2 (Dao 2023), A100, causal, head size 128, long sequences: about 190 of 312 TFLOP/s forward and 170
// backward.
constexpr double kAttentionForward = 0.61;
constexpr double kAttentionBackward = 0.54;

// What starting a kernel costs the host: the middle of the 4 to 6 microseconds that are measured for CUDA.
constexpr double kDispatchSeconds = 5e-6;

// AdamW in f32: reads the gradient, reads and writes the parameter and both moments.
constexpr double kOptimizerBytes = 7 * 4;

}  // namespace

double Roofline::gemm(std::int64_t rows, std::int64_t in, std::int64_t out) const {
  return gemm_seconds(device_, type_, gemm_coefficients(device_.generation), {rows, in, out});
}

double Roofline::stream(StreamKind kind, std::int64_t tokens, std::int64_t numbers_a_token) const {
  const double bytes = static_cast<double>(bytes_of(type_)) * static_cast<double>(tokens * numbers_a_token);
  return stream_seconds(device_, stream_coefficients(device_.generation, kind), bytes);
}

/// Shape {in, sum of out, rank, modules}: each module runs its own kernels.
double Roofline::adapter(const OperatorCall& call) const {
  const auto [in, out_sum, rank, modules] = call.shape;
  const std::int64_t tokens = call.tokens, out = out_sum / modules;
  const bool drops = call.op == Operator::lora_dropout;
  // A mask is a byte a number: half a number of 16 bits, taken as a whole one.
  const double dropout = drops ? stream(StreamKind::add, tokens, 3 * in) : 0;
  double module = 0;
  if (call.pass == Pass::forward) {
    module = dropout + gemm(tokens, in, rank) + gemm(tokens, rank, out) + stream(StreamKind::add, tokens, 2 * out) +
             stream(StreamKind::add, tokens, 3 * out);
  } else {
    // Scaled gradient; gradients of B, of the low-rank product and of A; where wanted that of the input, added to the
    // frozen layer's.
    module = stream(StreamKind::add, tokens, 2 * out) + gemm(rank, tokens, out) + gemm(tokens, out, rank) +
             gemm(rank, tokens, in);
    if (call.pass == Pass::backward)
      module += gemm(tokens, rank, in) + dropout + stream(StreamKind::add, tokens, 3 * in);
  }
  return static_cast<double>(modules) * module;
}

/// One sequence of `tokens` new tokens behind `prefix` stored ones: causal halves are skipped.
double Roofline::attention(const OperatorCall& call) const {
  const auto [heads, kv_heads, head_dim, unused] = call.shape;
  const auto fresh = static_cast<double>(call.context - call.prefix);
  const double scores = fresh * (static_cast<double>(call.prefix) + (fresh + 1) / 2);
  const bool forward = call.pass == Pass::forward;
  // Two products forward, five backward: scores again, and the gradients of values, probabilities, queries and keys.
  const double flops = (forward ? 2 : 5) * 2 * scores * static_cast<double>(heads * head_dim);
  const double compute = flops / (device_.peak_flops(type_) * (forward ? kAttentionForward : kAttentionBackward));
  const std::int64_t passes = forward ? 1 : 2;
  const double traffic =
      static_cast<double>(bytes_of(type_)) * static_cast<double>(passes * head_dim) *
      (2 * fresh * static_cast<double>(heads) + 2 * static_cast<double>(call.context) * static_cast<double>(kv_heads));
  return std::max(compute, stream_seconds(device_, stream_coefficients(device_.generation, StreamKind::add), traffic));
}

/// Final norm, head, cross-entropy in f32, and the way back.
double Roofline::head_loss(const OperatorCall& call) const {
  const auto [hidden, vocabulary, u0, u1] = call.shape;
  const std::int64_t widened = vocabulary * (4 / bytes_of(type_));
  return stream(StreamKind::norm, call.tokens, 2 * hidden) + gemm(call.tokens, hidden, vocabulary) +
         stream(StreamKind::add, call.tokens, vocabulary + widened) +  // to f32
         stream(StreamKind::add, call.tokens, 2 * widened) +           // log-softmax
         stream(StreamKind::add, call.tokens, widened + vocabulary) +  // its gradient
         gemm(call.tokens, vocabulary, hidden) + stream(StreamKind::norm, call.tokens, 3 * hidden);
}

double Roofline::host_seconds(const OperatorCall& call) const {
  if (call.tokens <= 0) return 0;
  const bool forward = call.pass == Pass::forward;
  double kernels = 1;
  switch (call.op) {
    case Operator::lora:
    case Operator::lora_dropout: {
      // As in `adapter`: two products, scaling and addition; going back scaling, three products and, towards the input,
      // a fourth and an addition.
      kernels = forward ? 4 : call.pass == Pass::backward ? 6 : 4;
      if (call.op == Operator::lora_dropout && call.pass != Pass::parameters) kernels += 1;
      kernels *= static_cast<double>(call.shape[3]);
      break;
    }
    case Operator::head_loss:
      kernels = 7;
      break;
    case Operator::dispatch:
    case Operator::send_recv:
    case Operator::all_reduce:
    case Operator::reduce_scatter:
    case Operator::all_gather:
      kernels = 0;
      break;
    default:
      break;
  }
  return kernels * kDispatchSeconds;
}

double Roofline::seconds(const OperatorCall& call) const {
  if (call.tokens <= 0) return 0;
  const bool forward = call.pass == Pass::forward;
  switch (call.op) {
    case Operator::embedding:
      return stream(StreamKind::gather, call.tokens, 2 * call.shape[1]);
    case Operator::rms_norm:
    case Operator::layer_norm:
      return stream(StreamKind::norm, call.tokens, (forward ? 2 : 3) * call.shape[0]);
    case Operator::linear:
      return forward ? gemm(call.tokens, call.shape[0], call.shape[1])
                     : gemm(call.tokens, call.shape[1], call.shape[0]);
    case Operator::lora:
    case Operator::lora_dropout:
      return adapter(call);
    case Operator::rope:
      return stream(StreamKind::rope, call.tokens, 2 * call.shape[0] * call.shape[1]);
    case Operator::attention:
      return attention(call);
    case Operator::swiglu:
      return stream(StreamKind::activation, call.tokens, (forward ? 3 : 5) * call.shape[0]);
    case Operator::gelu:
      return stream(StreamKind::activation, call.tokens, (forward ? 2 : 3) * call.shape[0]);
    case Operator::residual:
      return stream(StreamKind::add, call.tokens, 3 * call.shape[0]);
    case Operator::head_loss:
      return head_loss(call);
    case Operator::dispatch:
      return 0;  // see host_seconds
    case Operator::squared_norm:
      return stream_seconds(device_, stream_coefficients(device_.generation, StreamKind::add),
                            4 * static_cast<double>(call.tokens));
    case Operator::adamw:
      return stream_seconds(device_, stream_coefficients(device_.generation, StreamKind::add),
                            kOptimizerBytes * static_cast<double>(call.tokens));
    case Operator::send_recv:
    case Operator::all_reduce:
    case Operator::reduce_scatter:
    case Operator::all_gather:
      break;
  }
  throw error("'{}' needs a link between GPUs; give a cluster, or a profile that measured it", name(call.op));
}

}  // namespace braid::costmodel
