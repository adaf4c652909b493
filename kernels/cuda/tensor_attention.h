#pragma once

#include "kernels/attention.h"

namespace braid::kernels::cuda {

/// Attention of activations in bf16, by tensor cores: scores and sums in f32, what is multiplied with values or keys
/// rounded to bf16 (FlashAttention-2, Dao 2023). Deterministic: what a row gets is summed in one order. Heads of at
/// most 128 numbers.
AttentionForward tensor_attention_forward;
/// `delta` [T, Hq] is the sum of dout · out over a head.
void tensor_attention_backward(const AttentionShape& shape, std::span<const SequenceRows> sequences, ConstMatrix q,
                               ConstMatrix k, ConstMatrix v, ConstMatrix log_sum, ConstMatrix dout, ConstMatrix delta,
                               Matrix dq, Matrix dk, Matrix dv);

}  // namespace braid::kernels::cuda
