#include "report/sources/plan_summary.h"

#include <map>

#include <fmt/core.h>

namespace braid::report {
namespace {

/// "2 x (tp 1, pp 2)"
std::string describe_deployment(const Node& replicas, std::int64_t& ranks) {
  std::vector<std::pair<std::string, int>> kinds;
  for (const Node& replica : replicas.sequence("deployment")) {
    const std::int64_t tp = replica.integer_at("tp"), pp = replica.integer_at("pp");
    ranks += tp * pp;
    const std::string kind = fmt::format("tp {}, pp {}", tp, pp);
    if (kinds.empty() || kinds.back().first != kind) kinds.emplace_back(kind, 0);
    ++kinds.back().second;
  }
  std::string text;
  for (const auto& [kind, count] : kinds)
    text += (text.empty() ? "" : " + ") + (count == 1 ? kind : fmt::format("{} replicas of {}", count, kind));
  return text;
}

}  // namespace

bool is_plan(const Node& node) {
  return node.is_map() && node.find("deployment") && node.find("policy") && node.find("workload");
}

PlanSummary plan_summary_from(const Node& node, const std::filesystem::path& file) {
  PlanSummary plan;
  plan.file = file;
  plan.policy = node.at("policy").string_at("name");
  plan.backbone = std::filesystem::path(node.at("workload").string_at("backbone")).filename();
  plan.gpu = std::filesystem::path(node.at("cluster").string_at("gpu")).filename();
  plan.deployment = describe_deployment(node.at("deployment"), plan.ranks);
  plan.microbatches = node.at("schedule").integer_or("microbatches", 0);
  for (const Node& task : node.at("workload").at("tasks").sequence("tasks"))
    plan.tasks.push_back(task.string_at("name"));
  const Node& predicted = node.at("predicted");
  plan.step_seconds = predicted.number_at("step_seconds");
  plan.tokens_per_second = predicted.number_at("tokens_per_second");
  plan.data_tokens_per_second = predicted.number_or("data_tokens_per_second", 0);
  plan.bubble_ratio = predicted.number_at("bubble_ratio");
  plan.utilization = predicted.number_or("gpu_utilization", 0);
  for (const Node& bytes : predicted.at("peak_memory_bytes").sequence("peak_memory_bytes"))
    plan.peak_bytes.push_back(bytes.as_number("peak_memory_bytes"));
  if (const Node* held = predicted.find("held_memory_bytes"))
    for (const Node& bytes : held->sequence("held_memory_bytes"))
      plan.held_bytes.push_back(bytes.as_number("held_memory_bytes"));
  plan.bound_seconds = node.at("lower_bound").number_at("step_seconds");
  plan.bound_by = node.at("lower_bound").string_or("binds", "");
  if (const double bytes = node.at("profile").number_or("memory_bytes", 0); bytes > 0) plan.memory_bytes = bytes;
  if (const Node* reasons = node.find("reasons"))
    for (const Node& reason : reasons->sequence("reasons")) plan.reasons.push_back(reason.as_string("reasons"));
  return plan;
}

}  // namespace braid::report
