#include "planner/policies/common_options.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "planner/plan/recomputation.h"

namespace braid::planner {
namespace {

std::string sharing_reason(const FixedPlan& fixed, std::int32_t tasks) {
  if (fixed.htasks.size() == 1)
    return fmt::format("{} tasks share one backbone and every microbatch: its products are as large as can be", tasks);
  if (fixed.backbone_copies > 1)
    return fmt::format("a backbone for each of {} tasks, all in memory: in every step they come one after another",
                       tasks);
  return fmt::format("one backbone in memory, which {} tasks have one after another, each to its end", tasks);
}

std::string schedule_reason(const FixedPlan& fixed, const ReplicaShape& replica) {
  const std::int32_t stages = replica.stages(), chunks = replica.model_chunks;
  switch (fixed.schedule.pipeline) {
    case PipelineTemplate::gpipe:
      return "all microbatches of a batch go forward before one goes back: each stage holds all of them";
    case PipelineTemplate::interleaved:
      return fmt::format(
          "{} model chunks on each of {} stages: it waits {} times less for its first microbatch, and sends {} "
          "times the messages",
          chunks, stages, chunks, chunks);
    case PipelineTemplate::one_by_one:
      return fmt::format("one microbatch at a time: of {} stages one works while the others wait", stages);
    default:
      return fmt::format("1F1B: stage s of {} holds up to {} - s microbatches, counted from 0", stages, stages);
  }
}

std::string padding_reason(Padding padding) {
  if (padding == Padding::none) return "rows lie end to end, without padding";
  if (padding == Padding::max_length) return "rows are padded to their own task's max_length";
  return "rows are padded to the largest max_length of the tasks in their microbatch";
}

}  // namespace

std::vector<PolicyOption> common_options(Padding padding_otherwise, bool of_layers) {
  std::vector<std::string_view> paddings = {name(padding_otherwise)};
  for (const Padding padding : {Padding::none, Padding::max_length, Padding::longest}) {
    if (padding != padding_otherwise) paddings.push_back(name(padding));
  }
  return {{"pad_to", paddings}, {"kernels", {"separate", "fused"}}, transport_option(), recompute_option(of_layers)};
}

void set_common_options(const PolicyInput& input, FixedPlan& fixed) {
  fixed.batching.padding = padding_of(input.options);
  fixed.adapter_kernels = value_of(input.options, "kernels") == "fused" ? costmodel::AdapterKernels::fused
                                                                        : costmodel::AdapterKernels::separate;
}

PolicyOption transport_option() {
  return {"transport", {"links", "hosts"}};
}

PolicyOption sequence_parallel_option() {
  return {"sequence_parallel", {"off", "on"}};
}

bool shares_tokens(const OptionValues& options) {
  return std::find(options.begin(), options.end(), std::pair<std::string, std::string>("sequence_parallel", "on")) !=
         options.end();
}

bool stages_through_hosts(const OptionValues& options) {
  return value_of(options, "transport") == "hosts";
}

Padding padding_of(const OptionValues& options) {
  const std::string& value = value_of(options, "pad_to");
  for (const Padding padding : {Padding::none, Padding::max_length}) {
    if (name(padding) == value) return padding;
  }
  return Padding::longest;
}

void one_task_per_htask(std::int32_t task_count, FixedPlan& fixed) {
  fixed.htasks.clear();
  for (TaskIndex task = 0; task < task_count; ++task) fixed.htasks.push_back({task});
  std::vector<std::int32_t> all(fixed.htasks.size());
  std::iota(all.begin(), all.end(), 0);
  fixed.buckets = {all};
}

PolicyOption resident_option() {
  return {"resident", {"true", "false"}};
}

void place_backbones(const PolicyInput& input, FixedPlan& fixed) {
  const bool resident = value_of(input.options, "resident") == "true";
  if (!resident) queue_htasks(fixed);
  fixed.backbone_copies = resident ? input.task_count() : 1;
}

std::vector<std::string> reasons_of_system(const PolicyInput& input, const FixedPlan& fixed) {
  if (input.silent) return {};
  const ReplicaShape& replica = input.deployment.front();
  std::vector<std::string> reasons;
  if (input.task_count() > 1) reasons.push_back(sharing_reason(fixed, input.task_count()));
  if (replica.stages() > 1) reasons.push_back(schedule_reason(fixed, replica));
  if (fixed.shards_weights && input.deployment.size() > 1)
    reasons.push_back(
        fmt::format("each of {} ranks keeps its share of every layer, and gathers the layer for each pass",
                    input.deployment.size()));
  reasons.push_back(padding_reason(fixed.batching.padding));
  return reasons;
}

}  // namespace braid::planner
