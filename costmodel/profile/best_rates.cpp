#include "costmodel/profile/best_rates.h"

#include <algorithm>

namespace braid::costmodel {

double product_flops(Operator op, Pass pass, const OperatorShape& shape, double tokens) {
  const auto in = static_cast<double>(shape[0]), out = static_cast<double>(shape[1]);
  const auto rank = static_cast<double>(shape[2]), modules = static_cast<double>(shape[3]);
  switch (op) {
    case Operator::linear:
      return 2 * tokens * in * out;
    case Operator::head_loss:
      return 4 * tokens * in * out;
    case Operator::lora:
    case Operator::lora_dropout:
    case Operator::dora:
    case Operator::dora_dropout:
    case Operator::bottleneck: {
      // Forward A x and B (A x). Backward the gradients of A and B, and through both to the input.
      const double once = 2 * tokens * rank * (in * modules + out);
      return pass == Pass::backward ? 2 * once : once;
    }
    default:
      return 0;
  }
}

double moved_bytes(Operator op, Pass pass, const OperatorShape& shape, double tokens) {
  constexpr double kBytes = sizeof(float);
  const auto width = static_cast<double>(shape[0]);
  const bool forward = pass == Pass::forward;
  switch (op) {
    case Operator::rms_norm:
    case Operator::layer_norm:
    case Operator::gelu:
      return kBytes * tokens * width * (forward ? 2 : 3);
    case Operator::swiglu:
      return kBytes * tokens * width * (forward ? 3 : 5);
    case Operator::residual:
      return kBytes * tokens * width * 3;
    case Operator::head_norm:
      return kBytes * tokens * (width + static_cast<double>(shape[1])) * static_cast<double>(shape[2]) * 3;
    case Operator::rope:
      return kBytes * tokens * width * static_cast<double>(shape[1]) * 2;
    default:
      return 0;
  }
}

Rates best_rates(std::span<const ProfileEntry> entries, double peak_flops) {
  Rates best{peak_flops, 0};
  for (const ProfileEntry& entry : entries) {
    if (entry.seconds <= 0) continue;
    const auto tokens = static_cast<double>(entry.tokens);
    best.flops_per_second =
        std::max(best.flops_per_second, product_flops(entry.op, entry.pass, entry.shape, tokens) / entry.seconds);
    best.bytes_per_second =
        std::max(best.bytes_per_second, moved_bytes(entry.op, entry.pass, entry.shape, tokens) / entry.seconds);
  }
  return best;
}

}  // namespace braid::costmodel
