#include "sim/cluster/study/study.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/statistics.h"
#include "costmodel/work/memory.h"
#include "planner/policies/registry.h"
#include "traces/trace_statistics.h"
#include "traces/transform.h"

namespace braid::sim {
namespace {

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

/// GPUs that each job counts with in the load offered; 0: those recorded.
std::int32_t counted_gpus(const StudySettings& settings) {
  if (settings.as_recorded || settings.recorded_job_gpus) return 0;
  return static_cast<std::int32_t>(settings.job_gpus > 0 ? settings.job_gpus : instance_gpus(settings));
}

/// That an instance begins with.
std::int32_t first_gpus(const StudySettings& settings, InstanceModels& instances) {
  return settings.scaling != Scaling::out ? instances.least_gpus() : static_cast<std::int32_t>(instance_gpus(settings));
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

double offered_load(const StudySettings& settings, const traces::Trace& trace) {
  return traces::offered_load(trace, settings.cluster.gpus(), counted_gpus(settings));
}

Study::Study(traces::Trace trace, costmodel::Profile profile)
    : trace_(std::make_shared<traces::Trace>(std::move(trace))), profile_(std::move(profile)) {}

Study::Study(const traces::Generator& generator, costmodel::Profile profile)
    : Study(traces::generate(generator), std::move(profile)) {
  generator_ = generator;
}

std::shared_ptr<const traces::Trace> Study::trace_of(std::uint64_t seed) const {
  if (!generator_ || seed == generator_->seed) return trace_;
  traces::Generator another = *generator_;
  another.seed = seed;
  return std::make_shared<traces::Trace>(traces::generate(another));
}

RunResult Study::run(const RunSettings& wanted) {
  const StudySettings& settings = wanted.settings;
  const auto run_on = [&](const traces::Trace& trace) {
    RunResult result = settings.as_recorded ? run_recorded(wanted, trace) : run_tasks(wanted, trace);
    result.offered_load = offered_load(settings, trace);
    return result;
  };
  const std::shared_ptr<const traces::Trace> trace = trace_of(wanted.seed);
  RunResult result =
      settings.load > 0
          ? run_on(traces::scale_to_load(*trace, settings.load, settings.cluster.gpus(), counted_gpus(settings)))
          : run_on(*trace);
  result.trace = trace;
  return result;
}

std::optional<std::size_t> Study::misfit(const RunSettings& wanted) {
  const StudySettings& settings = wanted.settings;
  const std::shared_ptr<const traces::Trace> trace = trace_of(wanted.seed);
  std::vector<bool> fits;
  if (settings.as_recorded) {
    for (const traces::Job& job : trace->jobs) fits.push_back(job.gpus <= settings.cluster.gpus());
  } else {
    InstanceModels& instances = models(wanted);
    const auto alone = instances.alone(first_gpus(settings, instances));
    for (const KindIndex kind : draw_kinds(*trace, instances.kinds(), wanted.seed))
      fits.push_back(alone[static_cast<std::size_t>(kind)].has_value());
  }
  const auto first = std::find(fits.begin(), fits.end(), false);
  if (first == fits.end()) return std::nullopt;
  return static_cast<std::size_t>(first - fits.begin());
}

RunResult Study::run_recorded(const RunSettings& wanted, const traces::Trace& trace) {
  const std::int64_t gpus = wanted.settings.cluster.gpus();
  RunResult result;
  result.jobs = recorded_jobs(trace);
  give_quotas(result.jobs, trace, wanted.settings.quotas);
  draw_terms(result.jobs, wanted.settings.terms, wanted.seed);
  TaskSets sets = exclusive_sets();
  const auto scheduler = make_scheduler(wanted.scheduler, result.jobs);
  const workload::Cluster& cluster = wanted.settings.cluster;
  const GpuPool pool(cluster.nodes, cluster.gpus_per_node, true, wanted.placement);
  result.run = simulate_cluster(result.jobs, pool, *scheduler, sets, rules_of(wanted, trace));
  MetricContext context;
  context.gpus = gpus;
  context.fails = wanted.settings.failures.any() || !wanted.settings.outages.empty();
  context.gpu_hour_price = wanted.settings.gpu_hour_price;
  result.metrics = metrics_of(result.jobs, result.run, context);
  result.step_tokens = {0};
  return result;
}

RunResult Study::run_tasks(const RunSettings& wanted, const traces::Trace& trace) {
  const StudySettings& settings = wanted.settings;
  InstanceModels& instances = models(wanted);
  const auto kinds = draw_kinds(trace, instances.kinds(), wanted.seed);
  std::map<std::int32_t, std::vector<std::optional<KindCost>>> references;  // by GPUs
  const auto reference_rate = [&](KindIndex kind, std::int32_t gpus) {
    const auto [known, is_new] = references.try_emplace(gpus);
    if (is_new) known->second = reference(settings, gpus);
    const std::optional<KindCost>& cost = known->second[static_cast<std::size_t>(kind)];
    return cost ? 1 / cost->step_seconds : 0;
  };
  const auto steps = owed_steps(trace, kinds, reference_rate, counted_gpus(settings));
  const std::int32_t gpus = first_gpus(settings, instances);
  RunResult result;
  MetricContext context;
  context.kinds = instances.alone(gpus);
  result.jobs = task_jobs(trace, kinds, steps, gpus, context.kinds);
  give_quotas(result.jobs, trace, settings.quotas);
  draw_terms(result.jobs, settings.terms, wanted.seed);
  TaskSets sets = instances.task_sets({.most_tasks = most_tasks(wanted), .most_slowdown = settings.most_slowdown});
  const auto scheduler = make_scheduler(wanted.scheduler, result.jobs);
  InstanceRules rules = rules_of(wanted, trace);
  for (KindIndex kind = 0; kind < instances.kinds(); ++kind) {
    const std::size_t backbone = instances.backbone_of(kind);
    const auto& shape = instances.backbones()[backbone].backbone;
    rules.backbones.push_back(
        {static_cast<std::int32_t>(backbone), load_seconds(shape, profile_.storage(), settings.load_bytes_per_second)});
  }
  rules.scales = settings.scaling != Scaling::out;
  rules.replan_seconds = settings.replan_seconds;
  rules.audited_share = settings.audited_share;
  rules.audit_seed = wanted.seed;
  const workload::Cluster& cluster = settings.cluster;
  GpuPool pool(cluster.nodes, cluster.gpus_per_node, false, wanted.placement);
  std::vector<std::pair<std::int32_t, double>> expected;
  for (const std::int32_t size : instance_sizes(wanted)) expected.emplace_back(size, 1.0);
  pool.expect(std::move(expected));
  result.run = simulate_cluster(result.jobs, std::move(pool), *scheduler, sets, rules);
  context.gpus = cluster.gpus();
  context.fails = settings.failures.any() || !settings.outages.empty();
  context.step_tokens = result.step_tokens = instances.step_tokens();
  context.step_samples = instances.step_samples();
  context.peak_flops = profile_.peak_flops;
  if (!profile_.device.empty())
    context.power = costmodel::power_of(costmodel::device_of(profile_.device), profile_.clock);
  context.gpu_hour_price = settings.gpu_hour_price;
  result.metrics = metrics_of(result.jobs, result.run, context);
  if (settings.audited_share > 0) result.errors = errors_of(result.run, sets, instances);
  return result;
}

InstanceModels& Study::models(const RunSettings& wanted) {
  const StudySettings settings = wanted.settings;
  const std::vector<std::int32_t> sizes = instance_sizes(wanted);
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
