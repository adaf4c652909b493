#pragma once

#include <string>

#include "planner/plan.h"

namespace braid::planner {

/// The plan that came nearest to fitting memory, and by how much it did not.
struct Misfit {
  std::int32_t rank = 0;
  Bytes missing = 0;  ///< 0: no plan was tried
  FixedPlan fixed;
};

/// One line: which task asks for the most, on which rank, by how many bytes it misses, and the cheapest change that
/// would make it fit: a shorter max_length or smaller batches where activations are what is too much, else more ranks
/// or one shared backbone.
std::string describe_misfit(const Misfit& misfit, const workload::Workload& workload, std::string_view policy,
                            Bytes capacity);

}  // namespace braid::planner
