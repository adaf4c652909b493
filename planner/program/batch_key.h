#pragma once

#include <string>
#include <vector>

#include "planner/program/program.h"

namespace braid::planner {

/// A task's global batch.
struct BatchKey {
  TaskIndex task = 0;
  std::int64_t global_batch = 0;
  auto operator<=>(const BatchKey&) const = default;
};

/// The distinct global batches of a microbatch, ascending.
std::vector<BatchKey> batches_of(const Microbatch& microbatch);

/// "task 3 batch 7".
std::string describe(const BatchKey& key);

}  // namespace braid::planner
