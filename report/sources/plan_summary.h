#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/node.h"

namespace braid::report {

/// What a page tells of a plan.json.
struct PlanSummary {
  std::filesystem::path file;
  std::string policy, backbone, deployment, gpu;
  std::int64_t ranks = 0, microbatches = 0;
  std::vector<std::string> tasks;
  double step_seconds = 0, tokens_per_second = 0, data_tokens_per_second = 0, bubble_ratio = 0, utilization = 0;
  double bound_seconds = 0;
  std::string bound_by;
  std::vector<double> peak_bytes;      ///< of each rank
  std::vector<double> held_bytes;      ///< of that what it holds all the time
  std::optional<double> memory_bytes;  ///< that a rank may hold
  std::vector<std::string> reasons;
};

bool is_plan(const Node& node);
PlanSummary plan_summary_from(const Node& node, const std::filesystem::path& file);

}  // namespace braid::report
