#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "planner/plan/plan.h"
#include "planner/window/window_steps.h"

namespace braid::cli {

/// Writes the trace of windows [first, last) of a plan as they are replayed, from 0 on, with the memory that each
/// instruction leaves on its rank. Where the pipeline does not drain the first of them is one in mid-stream, unless it
/// is the run's first. Throws Error where there is no such window.
void write_replay(const planner::Plan& plan, const planner::WindowInput& input, std::int64_t first, std::int64_t last,
                  std::span<const std::string> task_names, std::ostream& out);

}  // namespace braid::cli
