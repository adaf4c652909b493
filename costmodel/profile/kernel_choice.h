#pragma once

#include <limits>
#include <span>
#include <vector>

#include "costmodel/work/operators.h"

namespace braid::costmodel {

/// Calls of an operator that a GPU's second kernel computes in place of the first, as it was measured to be quicker.
/// Second kernels are: of `linear`, products whose sums adapters join before they are rounded (H100 and H200), in place
/// of cuBLASLt's and a pass over what they make; of `attention`, cuDNN's forward pass, in place of braid's own; of
/// `launch`, a CUDA graph of all that a layer's pass launches, in place of launches one by one.
struct KernelChoice {
  Operator op = Operator::linear;
  Pass pass = Pass::forward;
  OperatorShape shape{};  ///< zeros: any
  /// Calls of so much: tokens, or of attention the context of its longest sequence.
  std::int64_t from = 0, to = std::numeric_limits<std::int64_t>::max();
  bool operator==(const KernelChoice&) const = default;
};

inline bool takes_second_kernel(std::span<const KernelChoice> choices, Operator op, Pass pass,
                                const OperatorShape& shape, std::int64_t amount) {
  for (const KernelChoice& choice : choices) {
    if (choice.op == op && choice.pass == pass && amount >= choice.from && amount <= choice.to &&
        (choice.shape == OperatorShape{} || choice.shape == shape))
      return true;
  }
  return false;
}

/// All that its second kernel can compute.
inline std::vector<KernelChoice> all_of(Operator op) {
  if (op == Operator::attention) return {{op, Pass::forward}};
  return {{op, Pass::forward}, {op, Pass::backward}};
}

}  // namespace braid::costmodel
