#include "sim/cluster/instances/instance_models.h"

#include <algorithm>

#include "base/error.h"

namespace braid::sim {

InstanceModels::InstanceModels(std::vector<workload::Workload> backbones, std::vector<std::int32_t> sizes, Make make)
    : backbones_(std::move(backbones)), sizes_(std::move(sizes)), make_(std::move(make)) {
  for (std::size_t backbone = 0; backbone < backbones_.size(); ++backbone)
    places_.insert(places_.end(), backbones_[backbone].tasks.size(), Place{backbone, places_.size()});
}

const InstanceModels::Known& InstanceModels::known(std::size_t backbone, std::int32_t gpus) {
  const std::lock_guard lock(mutex_);
  const auto [place, is_new] = models_.try_emplace({backbone, gpus});
  if (is_new) {
    try {
      place->second.model = make_(backbone, gpus);
    } catch (const Error& fault) {
      place->second.fault = fault.what();
    }
  }
  return place->second;
}

std::int32_t InstanceModels::least_gpus() {
  const auto fitting = [&](std::int32_t gpus) {
    std::vector<bool> fits;
    for (std::size_t backbone = 0; backbone < backbones_.size(); ++backbone) {
      const InstanceModel* model = known(backbone, gpus).model;
      for (std::size_t kind = 0; kind < backbones_[backbone].tasks.size(); ++kind)
        fits.push_back(model && model->alone()[kind]);
    }
    return fits;
  };
  const std::vector<bool> most = fitting(sizes_.back());
  for (const std::int32_t gpus : sizes_) {
    if (fitting(gpus) == most) return gpus;
  }
  return sizes_.back();
}

std::vector<std::optional<KindCost>> InstanceModels::alone(std::int32_t gpus) {
  std::vector<std::optional<KindCost>> costs;
  bool any = false;
  for (std::size_t backbone = 0; backbone < backbones_.size(); ++backbone) {
    const InstanceModel* model = known(backbone, gpus).model;
    any = any || model;
    for (std::size_t kind = 0; kind < backbones_[backbone].tasks.size(); ++kind)
      costs.push_back(model ? model->alone()[kind] : std::nullopt);
  }
  if (!any) throw Error(known(0, gpus).fault);
  return costs;
}

InstanceModel* InstanceModels::model_of(const std::vector<std::int32_t>& counts, std::int32_t gpus,
                                        std::vector<std::int32_t>& own) {
  const auto is_there = [](std::int32_t count) { return count > 0; };
  const auto first = std::find_if(counts.begin(), counts.end(), is_there);
  const Place& place = places_[static_cast<std::size_t>(first - counts.begin())];
  const auto begin = counts.begin() + static_cast<std::ptrdiff_t>(place.first);
  const auto end = begin + static_cast<std::ptrdiff_t>(backbones_[place.backbone].tasks.size());
  if (std::any_of(end, counts.end(), is_there)) return nullptr;
  own.assign(begin, end);
  return known(place.backbone, gpus).model;
}

std::optional<SetRate> InstanceModels::rate(const std::vector<std::int32_t>& counts, std::int32_t gpus) {
  std::vector<std::int32_t> own;
  InstanceModel* model = model_of(counts, gpus, own);
  std::optional<SetRate> rate = model ? model->rate(own) : std::nullopt;
  // Layouts of unlike sizes are unlike.
  if (rate) {
    const auto size = std::lower_bound(sizes_.begin(), sizes_.end(), gpus) - sizes_.begin();
    rate->layout = rate->layout * static_cast<std::int32_t>(sizes_.size()) + static_cast<std::int32_t>(size);
  }
  return rate;
}

double InstanceModels::error(const std::vector<std::int32_t>& counts, std::int32_t gpus) {
  std::vector<std::int32_t> own;
  InstanceModel* model = model_of(counts, gpus, own);
  BRAID_CHECK(model, "a set of tasks is held against a replay and cannot run");
  return model->error(own);
}

TaskSets InstanceModels::task_sets(const TaskSets::Limits& limits) {
  return {step_tokens(), limits,
          [this](const std::vector<std::int32_t>& counts, std::int32_t gpus) { return rate(counts, gpus); }, sizes_};
}

std::vector<double> InstanceModels::step_tokens() const {
  std::vector<double> tokens;
  for (const workload::Workload& backbone : backbones_) {
    for (const workload::Task& task : backbone.tasks)
      tokens.push_back(static_cast<double>(task.global_batch_size * task.sample_tokens()));
  }
  return tokens;
}

std::vector<double> InstanceModels::step_samples() const {
  std::vector<double> samples;
  for (const workload::Workload& backbone : backbones_) {
    for (const workload::Task& task : backbone.tasks) samples.push_back(static_cast<double>(task.global_batch_size));
  }
  return samples;
}

}  // namespace braid::sim
