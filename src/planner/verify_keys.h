#pragma once

#include <string>

#include "base/error.h"
#include "planner/program.h"

// Names that the files of `verify` share.
namespace braid::planner::detail {

struct BatchKey {
  TaskIndex task = 0;
  std::int64_t global_batch = 0;
  auto operator<=>(const BatchKey&) const = default;
};

inline std::string describe(const BatchKey& key) {
  return fmt::format("task {} batch {}", key.task, key.global_batch);
}

inline std::string describe(const StageProgram& stage) {
  return fmt::format("replica {} stage {}", stage.replica, stage.stage);
}

}  // namespace braid::planner::detail
