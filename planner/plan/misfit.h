#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace braid::planner {

/// The plan that came nearest to fitting memory, and by how much it did not.
struct Misfit {
  std::int32_t rank = 0;
  Bytes missing = 0;  ///< 0: none was laid out
  FixedPlan fixed;
};

/// "task 'a' does not fit memory under gpipe; REMEDY (rank 2 misses 1.25 GB of 24.00 GB)": the task with the most
/// tokens in one of that plan's microbatches, of the plan's ranks the fullest.
std::string describe(const Misfit& misfit, const workload::Workload& workload, std::string_view policy, Bytes capacity,
                     std::string_view remedy);

}  // namespace braid::planner
