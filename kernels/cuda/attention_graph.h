#pragma once

#include <compare>

#include "kernels/attention.h"
#include "kernels/cuda/operator_graph.h"

namespace braid::kernels::cuda {

/// How attention's matrices lie: strides are of rows, in numbers.
struct AttentionLayout {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t q_stride = 0, k_stride = 0, v_stride = 0, out_stride = 0, log_sum_stride = 0;
  auto operator<=>(const AttentionLayout&) const = default;
};

/// A forward pass of `sequences` sequences of at most `longest` rows, whose keys are their own rows.
struct AttentionGraph {
  OperatorGraph graph;
  int q, k, v, out, log_sum;
  /// Per sequence: its rows [sequences] as queries and as keys, and how far from each matrix's first number it begins
  /// [sequences + 1].
  int lengths, key_lengths, q_offsets, k_offsets, v_offsets, out_offsets, log_sum_offsets;
  int scale, lowest;  ///< numbers: what scores are multiplied with, and minus infinity
};

/// out = softmax(scale · q kᵀ, causal) v in bf16 with sums in f32, and the log of each softmax's denominator: operator
/// by operator as cuDNN's engine of flash attention expects them, with masks for what is longer than its sequence and
/// for what comes later than its row.
AttentionGraph attention_graph(const AttentionLayout& layout, std::int64_t sequences, std::int64_t longest);

}  // namespace braid::kernels::cuda
