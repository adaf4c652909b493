#pragma once

#include "planner/latency/durations.h"
#include "planner/verify/verify.h"
#include "planner/window/window_steps.h"

namespace braid::planner {

/// Computed tokens of the window's largest microbatch; of bins about.
std::int64_t largest_microbatch(const FixedPlan& fixed, const WindowInput& input, std::int64_t window);

/// What `verify` holds a window's Program against.
VerifyContext verify_context(const FixedPlan& fixed, const WindowInput& input, Bytes capacity);

/// The tasks' adapters, in order.
std::vector<costmodel::AdapterShape> adapters_of(const workload::Workload& workload);

/// What the costs and the memory of the plan's Programs are told by. Of tasks that the plan has no hTask of nothing is
/// held.
PassStyle pass_style(const FixedPlan& fixed, const workload::Workload& workload);
MemoryContext memory_context(const FixedPlan& fixed, const workload::Workload& workload);

}  // namespace braid::planner
