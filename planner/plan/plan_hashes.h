#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workload/workload.h"

namespace braid::planner {

struct Plan;

/// Of all that the text of a plan.json says runs and was predicted.
std::string hash_decisions(std::string_view plan_text);

/// The datasets and weights that a workload names, with their hashes.
std::vector<std::pair<std::string, std::string>> data_hashes(const workload::Workload& workload);
/// Throws Error that names the first file that is not what it was when the plan was made.
void check_data_hashes(const Plan& plan);

}  // namespace braid::planner
