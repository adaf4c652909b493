#pragma once

#include <string>

#include "base/error.h"
#include "planner/batch_key.h"
#include "planner/program.h"

// Names that the files of `verify` share.
namespace braid::planner::detail {

inline std::string describe(const StageProgram& stage) {
  return fmt::format("replica {} stage {}", stage.replica, stage.stage);
}

}  // namespace braid::planner::detail
