#pragma once

#include <cstdint>
#include <span>

#include "kernels/matrix.h"

namespace braid::kernels {

/// losses[t] = log Σ exp(logits[t]) − logits[t][labels[t]], and logits[t] becomes scales[t] · (softmax(logits[t]) −
/// onehot), the gradient of Σ scales[t] · losses[t]. logits [T, V], labels [T] in [0, V), scales, losses [T].
using CrossEntropy = void(Matrix logits, std::span<const std::int32_t> labels, std::span<const float> scales,
                          Vector losses);

/// The same where every shard has a part of the vocabulary, in two halves. First each makes shares[t] = {greatest of
/// its logits, Σ exp(logits − greatest), labels[t]'s logit or 0 where the label is not here}; its logits become
/// exp(logits − greatest). logits [T, part of V], labels [T] counted from the part's first, shares [T, 3].
using CrossEntropyShare = void(Matrix logits, std::span<const std::int32_t> labels, Matrix shares);
/// Then, from the shares of all shards side by side, [T, 3 · shards], of which the shard `place` has gone on with what
/// `logits` became: all losses, and the gradient of its part of the logits.
using CrossEntropyOfShares = void(Matrix logits, std::span<const std::int32_t> labels, std::span<const float> scales,
                                  ConstMatrix shares, std::int64_t place, Vector losses);

namespace reference {
CrossEntropy cross_entropy;
CrossEntropyShare cross_entropy_share;
CrossEntropyOfShares cross_entropy_of_shares;
}  // namespace reference
namespace cpu {
CrossEntropy cross_entropy;
CrossEntropyShare cross_entropy_share;
CrossEntropyOfShares cross_entropy_of_shares;
}  // namespace cpu

namespace cuda {
CrossEntropy cross_entropy;
CrossEntropyShare cross_entropy_share;
CrossEntropyOfShares cross_entropy_of_shares;
}  // namespace cuda

}  // namespace braid::kernels
