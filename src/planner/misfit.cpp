#include "planner/misfit.h"

#include <algorithm>

#include "base/error.h"

namespace braid::planner {
namespace {

/// The task whose samples are longest: with a sample a microbatch it is the one that still needs most.
const workload::Task& heaviest_task(const workload::Workload& workload) {
  return *std::max_element(workload.tasks.begin(), workload.tasks.end(),
                           [](const auto& a, const auto& b) { return a.max_length < b.max_length; });
}

/// What the rank's weights take, of all copies.
Bytes weights_of(const Misfit& misfit, const workload::Workload& workload) {
  std::int32_t next = 0;
  for (const ReplicaShape& replica : misfit.fixed.deployment) {
    for (std::int32_t s = 0; s < replica.stages(); ++s) {
      next += replica.tp;
      if (misfit.rank >= next) continue;
      const costmodel::StageShape shape{replica.layers_of(s), s == 0, s + 1 == replica.stages(), replica.tp};
      const Bytes whole = costmodel::backbone_bytes(workload.backbone, shape, misfit.fixed.storage);
      if (misfit.fixed.shards_weights) return whole / static_cast<Bytes>(misfit.fixed.deployment.size());
      return misfit.fixed.backbone_copies * whole;
    }
  }
  return 0;
}

std::string remedy(const Misfit& misfit, const workload::Workload& workload, const workload::Task& task,
                   Bytes capacity) {
  const Bytes weights = weights_of(misfit, workload);
  Bytes held = weights + misfit.fixed.storage.context;
  for (const workload::Task& other : workload.tasks)
    held += costmodel::adapter_bytes(workload.backbone, other.adapter, workload.backbone.layers);
  if (misfit.fixed.backbone_copies > 1 && weights / misfit.fixed.backbone_copies < capacity)
    return fmt::format("keep one backbone in place of {}: a policy that shares it, or resident=false",
                       misfit.fixed.backbone_copies);
  if (weights >= capacity)
    return fmt::format("its weights alone take {} bytes: use more ranks, or a smaller data type", weights);
  // Activations are in proportion to tokens, or worse: this much less of them is enough.
  const double over = static_cast<double>(misfit.missing);
  const double activations = static_cast<double>(std::max<Bytes>(1, capacity + misfit.missing - held));
  const auto length =
      static_cast<std::int64_t>(static_cast<double>(task.max_length) * std::max(0.0, 1 - over / activations));
  if (length >= 2) return fmt::format("lower max_length to about {}, or use more ranks", length);
  return "use more ranks, or a smaller data type";
}

}  // namespace

std::string describe_misfit(const Misfit& misfit, const workload::Workload& workload, std::string_view policy,
                            Bytes capacity) {
  const workload::Task& task = heaviest_task(workload);
  // The least that could be asked for would fit, yet nothing that the policy arranges does.
  if (misfit.missing == 0)
    return fmt::format(
        "{}: nothing that {} arranges on these ranks fits memory of {} bytes; use more ranks or microbatches",
        workload.file.string(), policy, capacity);
  return fmt::format("{}: task '{}' does not fit memory under {}: rank {} misses {} bytes of {}; {}",
                     workload.file.string(), task.name, policy, misfit.rank, misfit.missing, capacity,
                     remedy(misfit, workload, task, capacity));
}

}  // namespace braid::planner
