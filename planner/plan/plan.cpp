#include "planner/plan/plan.h"

#include <fmt/core.h>

#include "base/error.h"

namespace braid::planner {

std::string_view name(PipelineTemplate pipeline) {
  switch (pipeline) {
    case PipelineTemplate::interleaved:
      return "interleaved-1f1b";
    case PipelineTemplate::gpipe:
      return "gpipe";
    case PipelineTemplate::one_by_one:
      return "one-by-one";
    case PipelineTemplate::structured:
      return "structured";
    case PipelineTemplate::stream:
      return "stream";
    case PipelineTemplate::lora_1f1b:
      return "lora-1f1b";
    case PipelineTemplate::lora_gpipe:
      return "lora-gpipe";
    case PipelineTemplate::one_forward_one_backward:
      break;
  }
  return "1f1b";
}

std::string_view name(LengthDispatch::Kind kind) {
  switch (kind) {
    case LengthDispatch::Kind::solved:
      return "solved";
    case LengthDispatch::Kind::by_length:
      return "by_length";
    case LengthDispatch::Kind::balanced:
      break;
  }
  return "balanced";
}

std::string_view name(Padding padding) {
  switch (padding) {
    case Padding::max_length:
      return "max_length";
    case Padding::longest:
      return "longest";
    case Padding::none:
      break;
  }
  return "none";
}

std::string_view name(LaunchRule rule) {
  return rule == LaunchRule::shallowest ? "shallowest" : "earliest_start";
}

std::set<TaskIndex> FixedPlan::tasks() const {
  std::set<TaskIndex> tasks;
  for (const std::vector<TaskIndex>& htask : htasks) tasks.insert(htask.begin(), htask.end());
  return tasks;
}

Plan plan_among(Plan of_some, workload::Workload whole, std::span<const TaskIndex> places,
                std::vector<std::int64_t> taken) {
  BRAID_CHECK(places.size() == of_some.workload.tasks.size() && taken.size() == whole.tasks.size(),
              "{} places of {} tasks, {} counts of steps for {}", places.size(), of_some.workload.tasks.size(),
              taken.size(), whole.tasks.size());
  for (std::vector<TaskIndex>& htask : of_some.fixed.htasks)
    for (TaskIndex& task : htask) task = places[static_cast<std::size_t>(task)];
  of_some.workload = std::move(whole);
  of_some.taken = std::move(taken);
  return of_some;
}

void queue_htasks(FixedPlan& fixed) {
  fixed.schedule.turns.clear();
  for (std::size_t h = 0; h < fixed.htasks.size(); ++h) fixed.schedule.turns.push_back({static_cast<std::int32_t>(h)});
}

std::string describe_microbatches(const FixedPlan& fixed) {
  if (fixed.dispatch) return "microbatches of like lengths";
  if (fixed.batching.bins) return fmt::format("microbatches of up to {} tokens", fixed.batching.bins->capacity);
  return fmt::format("{} microbatch{} a global batch", fixed.batching.microbatches,
                     fixed.batching.microbatches == 1 ? "" : "es");
}

std::string describe_padding(const FixedPlan& fixed) {
  if (fixed.dispatch) return "their length range";
  if (fixed.batching.bins) return fmt::format("{} tokens a task", fixed.batching.bins->multiple);
  return std::string(name(fixed.batching.padding));
}

std::string describe_turns(const FixedPlan& fixed) {
  if (fixed.schedule.turns.empty()) return "together";
  return fixed.schedule.turns.size() == fixed.htasks.size() ? "queued"
                                                            : fmt::format("in {} turns", fixed.schedule.turns.size());
}

std::int32_t FixedPlan::ranks() const {
  std::int32_t count = 0;
  for (const ReplicaShape& replica : deployment) count += replica.tp * replica.stages();
  return count;
}

}  // namespace braid::planner
