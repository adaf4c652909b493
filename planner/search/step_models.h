#pragma once

#include "planner/milp/exchange.h"
#include "planner/window/window_steps.h"

// What a plan decides anew in every step, of its first window: the dispatch of rows by length (LobRA Eq. 3) and the
// packing into bins (LoRAFusion Eq. 3 and 4).
namespace braid::planner {

/// Writes the mixed-integer programs of those decisions: "dispatch", "fewest_bins" and "emptiest_bin".
void write_step_models(const FixedPlan& fixed, const WindowInput& input, milp::Exchange& models);

/// How many of the first window's packings have proven numbers of bins, and which search they are from; empty where the
/// plan has no bins.
std::string describe_packings(const FixedPlan& fixed, const WindowInput& input);

}  // namespace braid::planner
