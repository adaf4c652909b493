#pragma once

#include <span>

#include "costmodel/profile/profile.h"

namespace braid::costmodel {

/// What a machine was seen to do at best; 0: nothing tells.
struct Rates {
  double flops_per_second = 0;  ///< of products: frozen layers, adapters, the head
  double bytes_per_second = 0;  ///< of what reads and writes rows and computes little: norms, activations, residuals
};

/// Multiply-add FLOPs (2 a multiply-add) of one operator on so many tokens; 0 for one that is no product.
double product_flops(Operator op, Pass pass, const OperatorShape& shape, double tokens);

/// Bytes that one operator reads and writes once at least, rows of f32; 0 for one that is a product or a message.
double moved_bytes(Operator op, Pass pass, const OperatorShape& shape, double tokens);

/// The best rates among the entries; products no less than `peak_flops`.
Rates best_rates(std::span<const ProfileEntry> entries, double peak_flops);

}  // namespace braid::costmodel
