#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "exec/files/peft.h"
#include "exec/trainer.h"

namespace braid::exec {
namespace {

double largest_magnitude(std::span<const float> numbers) {
  double largest = 0;
  for (const float number : numbers) {
    if (!std::isfinite(number)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(static_cast<double>(number)));
  }
  return largest;
}

}  // namespace

double write_adapter(const std::filesystem::path& folder, const workload::Workload& workload, planner::TaskIndex task,
                     Runner& runner, Communicator& communicator) {
  const auto place = static_cast<std::size_t>(task);
  Adapter& adapter = *runner.adapters()[place];
  const std::vector<float> parameters = gather_layers(adapter.parameters_on_host(), adapter.layer_numbers(), runner,
                                                      workload.backbone.layers, communicator);
  if (communicator.rank() != 0) return 0;
  const workload::Task& spec = workload.tasks[place];
  Adapter whole(workload.backbone, spec.adapter,
                planner::LayerRange{0, static_cast<std::int32_t>(workload.backbone.layers)}, spec.seed);
  // What is frozen in it is as it was found.
  if (!spec.init_from.empty()) load_peft_adapter(spec.init_from, whole);
  std::ranges::copy(parameters, whole.parameters().begin());
  const double largest = largest_magnitude(parameters);
  if (!std::isfinite(largest)) return largest;
  write_peft_adapter(folder / spec.name, spec.adapter, workload.backbone, workload::published_name(workload),
                     adapter_tensors(whole));
  return largest;
}

}  // namespace braid::exec
