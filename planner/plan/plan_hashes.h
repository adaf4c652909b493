#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workload/workload.h"

namespace braid::planner {

struct Plan;

/// Of the text of a plan.json as it stands, spaces apart, whatever this build knows of its fields: a plan of a build
/// that wrote other fields is as whole as one of this build's.
struct PlanHashes {
  std::string workload, cluster, profile;
  std::string decisions;  ///< of all that it says runs and was predicted
};
PlanHashes hash_plan(std::string_view plan_text);

/// File, hash.
using DataHashes = std::vector<std::pair<std::string, std::string>>;
/// The datasets and weights that a workload names, with their hashes; those that are known are not read.
DataHashes data_hashes(const workload::Workload& workload, const DataHashes& known = {});
/// Throws Error that names the first file that is not what it was when the plan was made; those that are known are not
/// read.
void check_data_hashes(const Plan& plan, const DataHashes& known = {});

}  // namespace braid::planner
