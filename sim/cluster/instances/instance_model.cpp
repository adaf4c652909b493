#include "sim/cluster/instances/instance_model.h"

#include "sim/replay.h"

namespace braid::sim {
namespace {

workload::SampleIndex samples_of(const workload::Workload& kinds) {
  std::vector<std::vector<workload::SampleSize>> sizes;
  for (const workload::Task& task : kinds.tasks) sizes.push_back(workload::sample_sizes(task));
  return {kinds.tasks, std::move(sizes)};
}

costmodel::Profile linked(costmodel::Profile profile, const workload::Cluster& instance) {
  profile.interconnect = instance.interconnect();
  return profile;
}

planner::Timeline judge(const planner::Program& program, const planner::Durations& durations) {
  return replay(program, durations);
}

}  // namespace

InstanceModel::InstanceModel(workload::Workload kinds, workload::Cluster instance, costmodel::Profile profile,
                             const planner::PolicyChoice& choice, std::int32_t most_tasks,
                             const planner::Overrides& overrides)
    : kinds_(std::move(kinds)),
      instance_(std::move(instance)),
      samples_(samples_of(kinds_)),
      cost_(linked(std::move(profile), instance_)),
      choice_(choice),
      estimators_([this, overrides, most_tasks, layouts = std::make_shared<planner::Layouts>()] {
        return planner::make_step_estimator({kinds_, instance_, samples_, cost_, judge, overrides}, choice_, most_tasks,
                                            layouts);
      }) {
  for (std::size_t kind = 0; kind < kinds_.tasks.size(); ++kind) {
    std::optional<KindCost>& cost = alone_.emplace_back();
    const std::optional<planner::Plan>& plan = estimators_.first().alone(kind);
    if (!plan) continue;
    const planner::Prediction& predicted = plan->predicted;
    const double gpu_seconds = static_cast<double>(plan->ranks()) * predicted.step_seconds;
    cost = KindCost{predicted.step_seconds, predicted.gpu_utilization * gpu_seconds * cost_.profile().peak_flops};
  }
}

std::optional<SetRate> InstanceModel::rate(const std::vector<std::int32_t>& counts) {
  return rates_.of(counts, [&]() -> std::optional<SetRate> {
    const auto estimate =
        estimators_.with([&](planner::StepEstimator& estimator) { return estimator.estimate(counts); });
    if (!estimate) return std::nullopt;
    return SetRate{estimate->step_seconds, estimate->layout, estimate->busy_gpu_seconds};
  });
}

double InstanceModel::error(const std::vector<std::int32_t>& counts) {
  const std::optional<SetRate> estimated = rate(counts);
  return errors_.of(counts, [&] {
    return estimated->step_seconds / estimators_.with([&](planner::StepEstimator& estimator) {
      return estimator.replayed(counts);
    }) - 1;
  });
}

}  // namespace braid::sim
