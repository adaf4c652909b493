#include "sim/cluster/study/study_grid.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/units.h"
#include "planner/policies/registry.h"
#include "sim/cluster/scheduler.h"

namespace braid::sim {
namespace {

double positive(const std::string& name, const std::string& text) {
  double number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size() || !(number > 0) || std::isinf(number))
    throw error("--sweep {}: '{}' is not usable; give numbers above 0", name, text);
  return number;
}

std::int64_t whole(const std::string& name, const std::string& text) {
  const double number = positive(name, text);
  if (number != std::floor(number)) throw error("--sweep {}: '{}' is not usable; give whole numbers", name, text);
  return static_cast<std::int64_t>(number);
}

struct Sweepable {
  const char* name;
  void (*set)(StudySettings& settings, const std::string& name, const std::string& text);
  bool of_fine_tuning = false;  // means nothing to jobs as recorded
};
constexpr Sweepable kSweepable[] = {
    {"gpus", [](StudySettings& s, const std::string& n, const std::string& t) { set_gpus(s.cluster, whole(n, t)); }},
    {"load", [](StudySettings& s, const std::string& n, const std::string& t) { s.load = positive(n, t); }},
    {"instance-gpus",
     [](StudySettings& s, const std::string& n, const std::string& t) { s.instance_gpus = whole(n, t); }, true},
    {"most-tasks", [](StudySettings& s, const std::string& n, const std::string& t) { s.most_tasks = whole(n, t); },
     true},
    {"most-slowdown",
     [](StudySettings& s, const std::string& n, const std::string& t) { s.most_slowdown = positive(n, t); }, true},
    {"scaling", [](StudySettings& s, const std::string&, const std::string& t) { s.scaling = parse_scaling(t); }, true},
    {"gpu-mtbf-hours", [](StudySettings& s, const std::string& n,
                          const std::string& t) { s.failures.gpu_mtbf_seconds = kHour * positive(n, t); }},
    {"node-mtbf-hours", [](StudySettings& s, const std::string& n,
                           const std::string& t) { s.failures.node_mtbf_seconds = kHour * positive(n, t); }},
    {"checkpoint-minutes", [](StudySettings& s, const std::string& n,
                              const std::string& t) { s.checkpoint_seconds = kMinute * positive(n, t); }},
};

void check(const StudySettings& settings) {
  const std::int64_t gpus = instance_gpus(settings), node = settings.cluster.gpus_per_node;
  GpuPool::check_node(node);
  if (gpus > settings.cluster.gpus())
    throw error("an instance of {} GPUs is larger than the cluster, which has {}", gpus, settings.cluster.gpus());
  if (gpus > node && gpus % node != 0)
    throw error("an instance of {} GPUs is no whole number of nodes, which have {} each", gpus, node);
  for (const std::int64_t elastic : settings.elastic_gpus) {
    if (elastic > node && elastic % node != 0)
      throw error("an instance of {} GPUs is no whole number of nodes, which have {} each", elastic, node);
  }
  if (settings.most_tasks < 1) throw error("--most-tasks {}: give 1 or more", settings.most_tasks);
  for (const double mtbf : {settings.failures.gpu_mtbf_seconds, settings.failures.node_mtbf_seconds}) {
    if (mtbf < 1) throw error("failures every {:g} s are not usable; give 1 s or more between those of one", mtbf);
  }
  if (!settings.outages.empty() && settings.failures.any())
    throw error("--outages takes the place of failures that are drawn; leave one out");
  if (!settings.outages.empty() && settings.load > 0)
    throw error("--outages are at the trace's times, which --load changes; leave one out");
  for (const Outage& outage : settings.outages) {
    if (outage.gpus.node >= settings.cluster.nodes)
      throw error("node {} has outages and is not of the cluster, whose nodes are 0 to {}", outage.gpus.node,
                  settings.cluster.nodes - 1);
  }
}

const Sweepable& sweep_named(const std::string& name) {
  const auto known =
      std::find_if(std::begin(kSweepable), std::end(kSweepable), [&](const auto& each) { return each.name == name; });
  if (known == std::end(kSweepable))
    throw error("--sweep {} is not known; give one of {}", name, fmt::join(sweepable(), ", "));
  return *known;
}

/// What sweeps make of the settings, and the values that they set.
struct Point {
  StudySettings settings;
  std::vector<std::pair<std::string, std::string>> swept;
};

std::vector<Point> points_of(const StudySettings& settings, const StudyGrid& grid) {
  std::vector<Point> points = {{settings, {}}};
  for (const auto& [name, values] : grid.sweeps) {
    const Sweepable& sweep = sweep_named(name);
    if (settings.as_recorded && sweep.of_fine_tuning)
      throw error("--sweep {} is of fine-tuning tasks, and jobs as recorded are none; leave one of them out", name);
    std::vector<Point> next;
    for (const Point& point : points) {
      for (const auto& [earlier, value] : point.swept) {
        if (earlier == name) throw error("--sweep {} is given twice; give all of its values at once", name);
      }
      for (const std::string& value : values) {
        Point& swept = next.emplace_back(point);
        sweep.set(swept.settings, name, value);
        swept.swept.emplace_back(name, value);
      }
    }
    points = std::move(next);
  }
  return points;
}

}  // namespace

std::vector<std::string> sweepable() {
  std::vector<std::string> names;
  for (const Sweepable& each : kSweepable) names.emplace_back(each.name);
  return names;
}

std::vector<RunSettings> runs_of(const StudySettings& settings, const StudyGrid& grid) {
  const std::vector<Point> points = points_of(settings, grid);
  for (const std::string& name : grid.schedulers) {
    make_scheduler(name, {});
    if (!is_elastic(name)) continue;
    if (settings.as_recorded)
      throw error("scheduler '{}' changes GPUs, and jobs as recorded have theirs; leave one of them out", name);
  }
  std::vector<std::string> policies = grid.policies;
  if (settings.as_recorded) policies = {"as-recorded"};
  std::vector<RunSettings> runs;
  for (const Point& point : points) {
    check(point.settings);
    for (const std::string& scheduler : grid.schedulers) {
      if (is_elastic(scheduler) && point.settings.scaling != Scaling::out)
        throw error("scheduler '{}' chooses how many GPUs instances have; leave --scaling away", scheduler);
      for (const std::string& policy : policies) {
        if (!settings.as_recorded) planner::parse_policy(policy);
        for (const Placement placement : grid.placements) {
          for (std::int64_t s = 0; s < grid.seeds; ++s)
            runs.push_back({scheduler, policy, placement, grid.first_seed + static_cast<std::uint64_t>(s), point.swept,
                            point.settings});
        }
      }
    }
  }
  return runs;
}

}  // namespace braid::sim
