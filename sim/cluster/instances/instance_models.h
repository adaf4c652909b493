#pragma once

#include "sim/cluster/instances/instance_model.h"

namespace braid::sim {

/// How instances of several sizes run tasks on several backbones under one policy. Tasks of unlike backbones never
/// share an instance. For any number of simulations at a time; a model is asked for when it is first needed.
class InstanceModels {
 public:
  /// Of one backbone, by its place, and one number of GPUs. Throws Error when no kind fits memory.
  using Make = std::function<InstanceModel*(std::size_t backbone, std::int32_t gpus)>;

  /// The kinds are those of all backbones, one backbone after the other; `sizes` are the GPUs that instances may have,
  /// ascending.
  InstanceModels(std::vector<workload::Workload> backbones, std::vector<std::int32_t> sizes, Make make);

  std::int32_t kinds() const { return static_cast<std::int32_t>(places_.size()); }
  const std::vector<workload::Workload>& backbones() const { return backbones_; }
  std::size_t backbone_of(KindIndex kind) const { return places_[static_cast<std::size_t>(kind)].backbone; }

  /// The fewest GPUs on which each kind fits that fits the most GPUs. Throws Error when none fits any.
  std::int32_t least_gpus();
  /// Per kind; nothing for one that does not fit memory. Throws Error when none fits.
  std::vector<std::optional<KindCost>> alone(std::int32_t gpus);
  /// How far the estimate of a set is off a full replay, as a share of that.
  double error(const std::vector<std::int32_t>& counts, std::int32_t gpus);

  /// Sets that instances may run, as a simulation of one thread keeps them.
  TaskSets task_sets(const TaskSets::Limits& limits);

  /// Billed for a step of each kind; samples that it takes.
  std::vector<double> step_tokens() const;
  std::vector<double> step_samples() const;

 private:
  struct Place {
    std::size_t backbone = 0, first = 0;  // its first kind
  };
  struct Known {
    InstanceModel* model = nullptr;
    std::string fault;  // why there is none
  };

  const Known& known(std::size_t backbone, std::int32_t gpus);
  /// Of the one backbone that the tasks are on, and how many of each of its kinds; null when there are several.
  InstanceModel* model_of(const std::vector<std::int32_t>& counts, std::int32_t gpus, std::vector<std::int32_t>& own);
  std::optional<SetRate> rate(const std::vector<std::int32_t>& counts, std::int32_t gpus);

  std::vector<workload::Workload> backbones_;
  std::vector<std::int32_t> sizes_;
  Make make_;
  std::vector<Place> places_;  // per kind
  std::mutex mutex_;
  std::map<std::pair<std::size_t, std::int32_t>, Known> models_;
};

}  // namespace braid::sim
