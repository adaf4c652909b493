#pragma once

#include <limits>

namespace braid::sim {

/// A moment that does not come.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// What adding up seconds or costs may be off by, as a share, or parts of GPUs.
inline constexpr double kRounding = 1e-9;

}  // namespace braid::sim
