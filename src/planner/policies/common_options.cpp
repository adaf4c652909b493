#include "planner/policies/common_options.h"

#include <numeric>

namespace braid::planner {

std::vector<PolicyOption> common_options(Padding padding_otherwise) {
  std::vector<std::string_view> paddings = {name(padding_otherwise)};
  for (const Padding padding : {Padding::none, Padding::max_length, Padding::longest}) {
    if (padding != padding_otherwise) paddings.push_back(name(padding));
  }
  return {{"pad_to", paddings}, {"kernels", {"separate", "fused"}}, transport_option()};
}

void set_common_options(const PolicyInput& input, FixedPlan& fixed) {
  fixed.padding = padding_of(input.options);
  fixed.adapter_kernels = value_of(input.options, "kernels") == "fused" ? costmodel::AdapterKernels::fused
                                                                        : costmodel::AdapterKernels::separate;
}

PolicyOption transport_option() {
  return {"transport", {"links", "hosts"}};
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

}  // namespace braid::planner
