#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "planner/program/program.h"

namespace braid::exec {

/// How a task left a run before its last step.
enum class Ended : std::int8_t {
  no,
  diverged,
  cancelled,
  early,     ///< its loss on what it is evaluated on got no better
  outranked  ///< others of its search were better
};
std::string_view name(Ended ended);
/// Tasks that did.
using EndedTasks = std::map<planner::TaskIndex, Ended>;

/// What a task's objective came to on the samples that it is evaluated on, after so many steps.
struct Evaluated {
  std::int64_t step = 0;
  double loss = 0;

  bool operator==(const Evaluated&) const = default;
};

/// The first of the lowest finite loss.
std::optional<Evaluated> best_of(std::span<const Evaluated> evaluations);

}  // namespace braid::exec
