#include "sim/cluster/study.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/statistics.h"
#include "costmodel/memory.h"
#include "traces/trace_statistics.h"
#include "traces/transform.h"

namespace braid::sim {
namespace {

constexpr double kMinute = 60, kHour = 3600;

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
};
constexpr Sweepable kSweepable[] = {
    {"gpus", [](StudySettings& s, const std::string& n, const std::string& t) { set_gpus(s.cluster, whole(n, t)); }},
    {"load", [](StudySettings& s, const std::string& n, const std::string& t) { s.load = positive(n, t); }},
    {"instance-gpus",
     [](StudySettings& s, const std::string& n, const std::string& t) { s.instance_gpus = whole(n, t); }},
    {"most-tasks", [](StudySettings& s, const std::string& n, const std::string& t) { s.most_tasks = whole(n, t); }},
    {"most-slowdown",
     [](StudySettings& s, const std::string& n, const std::string& t) { s.most_slowdown = positive(n, t); }},
    {"scaling", [](StudySettings& s, const std::string&, const std::string& t) { s.scaling = parse_scaling(t); }},
    {"gpu-mtbf-hours", [](StudySettings& s, const std::string& n,
                          const std::string& t) { s.failures.gpu_mtbf_seconds = kHour * positive(n, t); }},
    {"node-mtbf-hours", [](StudySettings& s, const std::string& n,
                           const std::string& t) { s.failures.node_mtbf_seconds = kHour * positive(n, t); }},
    {"checkpoint-minutes", [](StudySettings& s, const std::string& n,
                              const std::string& t) { s.checkpoint_seconds = kMinute * positive(n, t); }},
};

std::int64_t instance_gpus(const StudySettings& settings) {
  return settings.instance_gpus > 0 ? settings.instance_gpus : settings.cluster.gpus_per_node;
}

/// Doubling: parts of a node, then whole nodes, up to a number that is one of both.
std::vector<std::int64_t> doubled_up_to(std::int64_t most, std::int64_t node) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t gpus = 1; gpus < std::min(most, node); gpus *= 2) sizes.push_back(gpus);
  for (std::int64_t gpus = node; gpus < most; gpus *= 2) sizes.push_back(gpus);
  sizes.push_back(most);
  return sizes;
}

bool is_elastic(const std::string& scheduler) {
  const auto& kinds = scheduler_kinds();
  return std::any_of(kinds.begin(), kinds.end(),
                     [&](const SchedulerKind& kind) { return kind.name == scheduler && kind.is_elastic; });
}

/// GPUs that instances may have.
std::vector<std::int32_t> sizes_of(const RunSettings& wanted) {
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

/// That share an instance.
std::int32_t most_tasks(const RunSettings& wanted) {
  if (!planner::parse_policy(wanted.policy).policy->shares_backbone() || is_elastic(wanted.scheduler)) return 1;
  // One that scales has a task for each GPU.
  const std::int64_t most = wanted.settings.scaling == Scaling::out ? 0 : sizes_of(wanted).back();
  return static_cast<std::int32_t>(std::max(wanted.settings.most_tasks, most));
}

/// In one word.
std::string described(const Configurations& from) {
  return fmt::format("{} {} {} {}", fmt::join(from.backbones, ","), fmt::join(from.datasets, ","),
                     fmt::join(from.batch_sizes, ","), fmt::join(from.ranks, ","));
}

/// So many GPUs of a cluster: of one node, or whole nodes.
workload::Cluster part_of(const workload::Cluster& cluster, std::int64_t gpus) {
  workload::Cluster part = cluster;
  part.nodes = (gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
  if (part.nodes == 1) part.gpus_per_node = gpus;
  return part;
}

void check(const StudySettings& settings) {
  const std::int64_t gpus = instance_gpus(settings), node = settings.cluster.gpus_per_node;
  if (gpus > settings.cluster.gpus())
    throw error("an instance of {} GPUs is larger than the cluster, which has {}", gpus, settings.cluster.gpus());
  if (gpus > node && gpus % node != 0)
    throw error("an instance of {} GPUs is no whole number of nodes, which have {} each", gpus, node);
  for (const std::int64_t elastic : settings.elastic_gpus) {
    if (elastic > node && elastic % node != 0)
      throw error("an instance of {} GPUs is no whole number of nodes, which have {} each", elastic, node);
  }
  if (settings.most_tasks < 1) throw error("--most-tasks {}: give 1 or more", settings.most_tasks);
  for (const Outage& outage : settings.outages) {
    if (outage.gpus.node >= settings.cluster.nodes)
      throw error("node {} has outages and is not of the cluster, whose nodes are 0 to {}", outage.gpus.node,
                  settings.cluster.nodes - 1);
  }
}

double load_seconds(const costmodel::BackboneShape& backbone, const costmodel::Storage& storage,
                    double bytes_per_second) {
  costmodel::StageShape whole;
  whole.layers = backbone.layers;
  whole.has_embedding = whole.has_head = true;
  return static_cast<double>(costmodel::backbone_bytes(backbone, whole, storage)) / bytes_per_second;
}

/// As far as they are the same for all jobs.
InstanceRules rules_of(const RunSettings& wanted, const traces::Trace& trace) {
  const StudySettings& settings = wanted.settings;
  InstanceRules rules;
  rules.horizon_seconds = settings.horizon_seconds;
  rules.checkpoint_seconds = settings.checkpoint_seconds;
  rules.keeps_timeline = settings.keeps_timeline;
  const double first = trace.jobs.empty() ? 0 : trace.jobs.front().submit_seconds;
  rules.outages = settings.outages.empty() ? Outages(settings.failures, settings.cluster.nodes,
                                                     settings.cluster.gpus_per_node, first, wanted.seed)
                                           : Outages(settings.outages);
  return rules;
}

void give_quotas(std::vector<ClusterJob>& jobs, const traces::Trace& trace,
                 const std::map<std::string, double>& quotas) {
  for (ClusterJob& job : jobs) {
    if (job.virtual_cluster < 0) continue;
    const auto quota = quotas.find(trace.virtual_clusters[static_cast<std::size_t>(job.virtual_cluster)]);
    if (quota != quotas.end()) job.quota = quota->second;
  }
}

EstimateErrors errors_of(const ClusterRun& run, const TaskSets& sets, InstanceModels& models) {
  std::vector<double> errors;
  for (const SetIndex set : run.audited) errors.push_back(std::abs(models.error(sets.counts(set), sets.gpus(set))));
  EstimateErrors found;
  found.audited = static_cast<std::int64_t>(errors.size());
  if (errors.empty()) return found;
  found.median = quantile(errors, 0.5);
  found.p99 = quantile(errors, 0.99);
  found.most = *std::max_element(errors.begin(), errors.end());
  return found;
}

}  // namespace

Scaling parse_scaling(const std::string& word) {
  for (const Scaling scaling : {Scaling::out, Scaling::up, Scaling::up_then_out}) {
    if (word == name(scaling)) return scaling;
  }
  throw error("scaling '{}' is not known; give out, up or up-then-out", word);
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

std::vector<std::string> sweepable() {
  std::vector<std::string> names;
  for (const Sweepable& each : kSweepable) names.emplace_back(each.name);
  return names;
}

std::vector<RunSettings> runs_of(const StudySettings& settings, const StudyGrid& grid) {
  struct Point {
    StudySettings settings;
    std::vector<std::pair<std::string, std::string>> swept;
  };
  std::vector<Point> points = {{settings, {}}};
  for (const auto& [name, values] : grid.sweeps) {
    const auto known =
        std::find_if(std::begin(kSweepable), std::end(kSweepable), [&](const auto& each) { return each.name == name; });
    if (known == std::end(kSweepable))
      throw error("--sweep {} is not known; give one of {}", name, fmt::join(sweepable(), ", "));
    std::vector<Point> next;
    for (const Point& point : points) {
      for (const std::string& value : values) {
        Point& swept = next.emplace_back(point);
        known->set(swept.settings, name, value);
        swept.swept.emplace_back(name, value);
      }
    }
    points = std::move(next);
  }
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

Study::Study(traces::Trace trace, costmodel::Profile profile)
    : trace_(std::move(trace)), profile_(std::move(profile)) {}

RunResult Study::run(const RunSettings& wanted) {
  const StudySettings& settings = wanted.settings;
  const std::int64_t job_gpus = settings.job_gpus > 0 ? settings.job_gpus : instance_gpus(settings);
  const bool recorded = settings.as_recorded || settings.recorded_job_gpus;
  const auto counted = static_cast<std::int32_t>(recorded ? 0 : job_gpus);
  const std::int64_t gpus = settings.cluster.gpus();
  if (settings.load <= 0) {
    RunResult result = settings.as_recorded ? run_recorded(wanted, trace_) : run_tasks(wanted, trace_);
    result.offered_load = traces::offered_load(trace_, gpus, counted);
    return result;
  }
  const traces::Trace scaled = traces::scale_to_load(trace_, settings.load, gpus, counted);
  RunResult result = settings.as_recorded ? run_recorded(wanted, scaled) : run_tasks(wanted, scaled);
  result.offered_load = traces::offered_load(scaled, gpus, counted);
  return result;
}

RunResult Study::run_recorded(const RunSettings& wanted, const traces::Trace& trace) {
  const std::int64_t gpus = wanted.settings.cluster.gpus();
  RunResult result;
  result.jobs = recorded_jobs(trace);
  give_quotas(result.jobs, trace, wanted.settings.quotas);
  TaskSets sets = exclusive_sets();
  const auto scheduler = make_scheduler(wanted.scheduler, result.jobs);
  const workload::Cluster& cluster = wanted.settings.cluster;
  const GpuPool pool(cluster.nodes, cluster.gpus_per_node, true, wanted.placement);
  result.run = simulate_cluster(result.jobs, pool, *scheduler, sets, rules_of(wanted, trace));
  MetricContext context;
  context.gpus = gpus;
  context.gpu_hour_price = wanted.settings.gpu_hour_price;
  result.metrics = metrics_of(result.jobs, result.run, context);
  result.step_tokens = {0};
  return result;
}

RunResult Study::run_tasks(const RunSettings& wanted, const traces::Trace& trace) {
  const StudySettings& settings = wanted.settings;
  InstanceModels& instances = models(wanted);
  const std::int64_t job_gpus = settings.job_gpus > 0 ? settings.job_gpus : instance_gpus(settings);
  const auto kinds = draw_kinds(trace, instances.kinds(), wanted.seed);
  std::map<std::int32_t, std::vector<std::optional<KindCost>>> references;  // by GPUs
  const auto reference_rate = [&](KindIndex kind, std::int32_t gpus) {
    const auto [known, is_new] = references.try_emplace(gpus);
    if (is_new) known->second = reference(settings, gpus);
    const std::optional<KindCost>& cost = known->second[static_cast<std::size_t>(kind)];
    return cost ? 1 / cost->step_seconds : 0;
  };
  const auto steps =
      owed_steps(trace, kinds, reference_rate, static_cast<std::int32_t>(settings.recorded_job_gpus ? 0 : job_gpus));
  const bool scales = settings.scaling != Scaling::out;
  const auto gpus = scales ? instances.least_gpus() : static_cast<std::int32_t>(instance_gpus(settings));
  RunResult result;
  MetricContext context;
  context.kinds = instances.alone(gpus);
  result.jobs = task_jobs(trace, kinds, steps, gpus, context.kinds);
  give_quotas(result.jobs, trace, settings.quotas);
  TaskSets sets = instances.task_sets({.most_tasks = most_tasks(wanted), .most_slowdown = settings.most_slowdown});
  const auto scheduler = make_scheduler(wanted.scheduler, result.jobs);
  InstanceRules rules = rules_of(wanted, trace);
  for (KindIndex kind = 0; kind < instances.kinds(); ++kind) {
    const std::size_t backbone = instances.backbone_of(kind);
    const auto& shape = instances.backbones()[backbone].backbone;
    rules.backbones.push_back(
        {static_cast<std::int32_t>(backbone), load_seconds(shape, profile_.storage(), settings.load_bytes_per_second)});
  }
  rules.scales = scales;
  rules.replan_seconds = settings.replan_seconds;
  rules.audited_share = settings.audited_share;
  rules.audit_seed = wanted.seed;
  const workload::Cluster& cluster = settings.cluster;
  GpuPool pool(cluster.nodes, cluster.gpus_per_node, false, wanted.placement);
  pool.expect({{gpus, 1.0}});
  result.run = simulate_cluster(result.jobs, std::move(pool), *scheduler, sets, rules);
  context.gpus = cluster.gpus();
  context.step_tokens = result.step_tokens = instances.step_tokens();
  context.step_samples = instances.step_samples();
  context.peak_flops = profile_.peak_flops;
  if (!profile_.device.empty()) context.power = costmodel::power_of(costmodel::device_of(profile_.device));
  context.gpu_hour_price = settings.gpu_hour_price;
  result.metrics = metrics_of(result.jobs, result.run, context);
  if (settings.audited_share > 0) result.errors = errors_of(result.run, sets, instances);
  return result;
}

InstanceModels& Study::models(const RunSettings& wanted) {
  const StudySettings settings = wanted.settings;
  const std::vector<std::int32_t> sizes = sizes_of(wanted);
  const std::string policy = wanted.policy;
  const std::string key =
      fmt::format("{} {} {} {}", policy, most_tasks(wanted), described(settings.configurations), fmt::join(sizes, ","));
  const std::int32_t most = most_tasks(wanted);
  const std::lock_guard lock(mutex_);
  std::unique_ptr<InstanceModels>& known = models_[key];
  if (!known)
    known = std::make_unique<InstanceModels>(
        configured_tasks(settings.configurations), sizes,
        [=, this](std::size_t backbone, std::int32_t gpus) { return model(settings, policy, most, backbone, gpus); });
  return *known;
}

InstanceModel* Study::model(const StudySettings& settings, const std::string& policy, std::int32_t most_tasks,
                            std::size_t backbone, std::int64_t gpus) {
  const std::string key =
      fmt::format("{} {} {} {} {}", policy, most_tasks, described(settings.configurations), backbone, gpus);
  const std::lock_guard lock(mutex_);
  std::unique_ptr<InstanceModel>& known = model_[key];
  if (!known)
    known = std::make_unique<InstanceModel>(configured_tasks(settings.configurations)[backbone],
                                            part_of(settings.cluster, gpus), profile_, planner::parse_policy(policy),
                                            most_tasks);
  return known.get();
}

std::vector<std::optional<KindCost>> Study::reference(const StudySettings& settings, std::int32_t gpus) {
  InstanceModels models(
      configured_tasks(settings.configurations), {gpus},
      [&](std::size_t backbone, std::int32_t of_gpus) { return reference_model(settings, backbone, of_gpus); });
  return models.alone(gpus);
}

InstanceModel* Study::reference_model(const StudySettings& settings, std::size_t backbone, std::int64_t gpus) {
  const std::string key = fmt::format("reference {} {} {}", described(settings.configurations), backbone, gpus);
  const std::lock_guard lock(mutex_);
  std::unique_ptr<InstanceModel>& known = model_[key];
  if (!known) {
    const planner::PolicyChoice nemo = planner::parse_policy("nemo");
    const auto make = [&](const planner::Overrides& overrides) {
      known = std::make_unique<InstanceModel>(configured_tasks(settings.configurations)[backbone],
                                              part_of(settings.cluster, gpus), profile_, nemo, 1, overrides);
    };
    try {
      make({.tp = 1, .pp = 1, .microbatches = {}});
    } catch (const Error&) {
      make({});  // the backbone fits no GPU by itself
    }
  }
  return known.get();
}

}  // namespace braid::sim
