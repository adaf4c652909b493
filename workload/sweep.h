#pragma once

#include <vector>

#include "base/node.h"

namespace braid::workload {

/// A task of workload.yaml of which any value is a list is a sweep: a task for each combination, the values of the last
/// list changing first, each named after the sweep and what it has of the lists ("quiz-r8-lr1e-4", "quiz-dropout_0.1").
/// Lists of modules are no lists of values, but a list of such lists is. Throws Error for an empty list, and for more
/// than kMostSwept combinations.
std::vector<Node> expand_sweep(const Node& task);
inline constexpr std::size_t kMostSwept = 1024;

}  // namespace braid::workload
