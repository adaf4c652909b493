#pragma once

#include <optional>

#include "exec/buffer.h"

namespace braid::exec {

/// A pass of a microbatch through part of a backbone that may be split over tensor-parallel shards, all of which run it
/// alike. It stops wherever they have to sum something up:
///     while (std::optional<Matrix> partial = pass.next()) { sum *partial over the shards, in place }
/// Between two calls other passes may run. Without shards it never stops.
class ShardedPass {
 public:
  virtual ~ShardedPass() = default;
  /// Runs up to the next partial sum and gives it; nothing when the pass has ended.
  virtual std::optional<kernels::Matrix> next() = 0;
  /// Of a pass that has ended.
  virtual Buffer take_result() = 0;
};

}  // namespace braid::exec
