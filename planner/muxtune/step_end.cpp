#include "planner/muxtune/step_end.h"

#include <algorithm>

namespace braid::planner {

using costmodel::Operator;
using costmodel::Pass;
using costmodel::StageShape;

StepEnd::StepEnd(const PolicyInput& input, const StageShape& stage)
    : has_bubbles_(input.deployment.front().stages() > 1),
      tasks_(input.task_count()),
      sync_time_(sync_time(input, stage)),
      step_time_(step_time(input, stage)) {}

Nanoseconds StepEnd::after(Nanoseconds makespan, Nanoseconds buckets) const {
  const Nanoseconds earlier_sync = sync_time_ - sync_time_ / buckets, earlier_step = step_time_ - step_time_ / buckets;
  const Nanoseconds passes = makespan + (has_bubbles_ ? 0 : earlier_step);
  const Nanoseconds last = std::max(sync_time_, step_time_) / buckets;
  return std::max(passes, earlier_sync) + last + std::min(sync_time_, step_time_) / tasks_;
}

/// What the replicas take to sum the stage's adapter gradients of all tasks: one after another, beside compute.
Nanoseconds StepEnd::sync_time(const PolicyInput& input, const StageShape& stage) const {
  const std::int32_t tp = input.deployment.front().tp, ranks = tp * input.deployment.front().stages();
  const auto replicas = static_cast<std::int32_t>(input.deployment.size());
  if (replicas < 2) return 0;
  std::vector<std::int32_t> holders;
  for (std::int32_t replica = 0; replica < replicas; ++replica) {
    for (std::int32_t t = 0; t < tp; ++t) holders.push_back(replica * ranks + t);
  }
  const costmodel::OperatorShape group = input.cost().group_shape(Operator::all_reduce, holders);
  Nanoseconds total = 0;
  for (const workload::Task& task : input.workload.tasks) {
    const Bytes bytes =
        static_cast<Bytes>(sizeof(float)) * stage.layers * task.adapter.layer_parameters(input.workload.backbone);
    if (bytes <= 0) continue;
    total += nanoseconds(input.cost().estimate({Operator::all_reduce, Pass::forward, group, bytes, 0, 0, 1}).seconds);
  }
  return total;
}

/// What the stage takes for all tasks' optimizer steps.
Nanoseconds StepEnd::step_time(const PolicyInput& input, const StageShape& stage) const {
  Nanoseconds total = 0;
  for (const workload::Task& task : input.workload.tasks) {
    const std::int64_t parameters = stage.layers * task.adapter.layer_parameters(input.workload.backbone);
    total += nanoseconds(input.cost().estimate({Operator::adamw, Pass::forward, {}, parameters, 0, 0, 1}).seconds);
  }
  return total;
}

}  // namespace braid::planner
