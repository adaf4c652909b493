#include "sim/cluster/study/study_settings.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/named.h"
#include "planner/policies/registry.h"
#include "sim/cluster/scheduler.h"

namespace braid::sim {
namespace {

/// Doubling: parts of a node, then whole nodes, up to a number that is one of both.
std::vector<std::int64_t> doubled_up_to(std::int64_t most, std::int64_t node) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t gpus = 1; gpus < std::min(most, node); gpus *= 2) sizes.push_back(gpus);
  for (std::int64_t gpus = node; gpus < most; gpus *= 2) sizes.push_back(gpus);
  sizes.push_back(most);
  return sizes;
}

}  // namespace

Scaling parse_scaling(const std::string& word) {
  constexpr Scaling kScalings[] = {Scaling::out, Scaling::up, Scaling::up_then_out};
  if (const auto scaling = value_named(word, kScalings)) return *scaling;
  throw error("scaling '{}' is not known; give one of {}", word, names_of(kScalings));
}

std::string_view name(Scaling scaling) {
  switch (scaling) {
    case Scaling::out:
      return "out";
    case Scaling::up:
      return "up";
    case Scaling::up_then_out:
      return "up-then-out";
  }
  return "";
}

void set_gpus(workload::Cluster& cluster, std::int64_t gpus) {
  if (gpus < 1) throw error("a cluster of {} GPUs is not usable; give 1 or more", gpus);
  if (gpus < cluster.gpus_per_node) {
    cluster.nodes = 1;
    cluster.gpus_per_node = gpus;
  } else if (gpus % cluster.gpus_per_node != 0) {
    throw error("{} GPUs are no whole number of nodes, which have {} each", gpus, cluster.gpus_per_node);
  } else {
    cluster.nodes = gpus / cluster.gpus_per_node;
  }
}

std::int64_t instance_gpus(const StudySettings& settings) {
  return settings.instance_gpus > 0 ? settings.instance_gpus : settings.cluster.gpus_per_node;
}

std::vector<std::int32_t> instance_sizes(const RunSettings& wanted) {
  const StudySettings& settings = wanted.settings;
  const std::int64_t own = instance_gpus(settings), cluster = settings.cluster.gpus();
  const std::int64_t node = settings.cluster.gpus_per_node;
  std::vector<std::int64_t> sizes = {own};
  if (settings.scaling == Scaling::up) sizes = doubled_up_to(cluster, node);
  if (settings.scaling == Scaling::up_then_out) sizes = doubled_up_to(own, node);
  if (is_elastic(wanted.scheduler)) {
    sizes = settings.elastic_gpus;
    if (sizes.empty()) sizes = doubled_up_to(std::min(cluster, std::max(own, 2 * node)), node);
    sizes.push_back(own);
  }
  std::erase_if(sizes, [&](std::int64_t gpus) { return gpus > cluster; });
  std::set<std::int32_t> sorted(sizes.begin(), sizes.end());
  return {sorted.begin(), sorted.end()};
}

std::int32_t most_tasks(const RunSettings& wanted) {
  if (!planner::parse_policy(wanted.policy).policy->shares_backbone() || is_elastic(wanted.scheduler)) return 1;
  // One that scales has a task for each GPU.
  const std::int64_t most = wanted.settings.scaling == Scaling::out ? 0 : instance_sizes(wanted).back();
  return static_cast<std::int32_t>(std::max(wanted.settings.most_tasks, most));
}

}  // namespace braid::sim
