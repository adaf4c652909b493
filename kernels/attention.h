#pragma once

#include <cstdint>
#include <span>

#include "kernels/matrix.h"

namespace braid::kernels {

/// Tokens of a sequence that an earlier microbatch computed, as rows of its matrices: k, v, dk, dv [count, Hkv · D].
struct EarlierKeys {
  ConstMatrix k, v;
  Matrix dk, dv;  ///< a backward pass adds to them; a forward pass does not look at them
};

/// Rows [first, first + count) of a packed microbatch: one sequence, which attends causally to its earlier tokens, in
/// their order, and to itself, and to no other.
struct SequenceRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::span<const EarlierKeys> earlier = {};
  /// What later chunks of the sample have added to the gradients of its first rows' keys and values, which a backward
  /// pass goes on from; without rows: nothing.
  Matrix later_dk = {}, later_dv = {};
};

/// Grouped-query attention: Hq query heads, Hkv key/value heads (query head h reads key/value head h / (Hq / Hkv)),
/// head size D, scores scaled by 1/sqrt(D). q, out, dout, dq [T, Hq · D]; k, v, dk, dv [T, Hkv · D]; any row strides,
/// as they are often columns of one fused matrix. log_sum [T, Hq] keeps the log of each softmax's denominator (scores
/// scaled) for the backward pass. The sequences are disjoint and cover all rows. dq, dk and dv are overwritten.
struct AttentionShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
};

using AttentionForward = void(const AttentionShape& shape, std::span<const SequenceRows> sequences, ConstMatrix q,
                              ConstMatrix k, ConstMatrix v, Matrix out, Matrix log_sum);
using AttentionBackward = void(const AttentionShape& shape, std::span<const SequenceRows> sequences, ConstMatrix q,
                               ConstMatrix k, ConstMatrix v, ConstMatrix out, ConstMatrix log_sum, ConstMatrix dout,
                               Matrix dq, Matrix dk, Matrix dv);

namespace reference {
AttentionForward attention_forward;
AttentionBackward attention_backward;
}  // namespace reference

/// Never holds more than a block of scores a thread. What a row gets does not depend on what else is in the microbatch,
/// nor on the number of threads: blocks are counted from each sequence's own start. A sequence cut into chunks gets the
/// same, to the bit, as whole: sums over queries begin with the last.
namespace cpu {
AttentionForward attention_forward;
AttentionBackward attention_backward;
}  // namespace cpu

namespace cuda {
AttentionForward attention_forward;
AttentionBackward attention_backward;
}  // namespace cuda

}  // namespace braid::kernels
