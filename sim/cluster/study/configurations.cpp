#include "sim/cluster/study/configurations.h"

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include "base/error.h"

namespace braid::sim {
namespace {

struct KnownDataset {
  const char* name;
  std::int64_t max_length;
  double mean, sigma;  // of lengths, lognormal
};
constexpr std::array kKnown = {KnownDataset{"sst2", 64, 25, 0.5}, KnownDataset{"qa", 128, 60, 0.4},
                               KnownDataset{"rte", 256, 80, 0.6}};

/// Planning looks at so many steps of a task; how many there really are a trace says.
constexpr std::int64_t kSteps = 8;

const KnownDataset& dataset_of(const std::string& name) {
  for (const KnownDataset& known : kKnown) {
    if (name == known.name) return known;
  }
  throw error("unknown dataset '{}'; give one of {}", name, fmt::join(known_datasets(), ", "));
}

workload::Task task_of(const KnownDataset& dataset, std::int64_t batch_size, std::int64_t rank) {
  workload::Task task;
  task.name = fmt::format("{}-b{}-r{}", dataset.name, batch_size, rank);
  task.lengths = workload::LengthDistribution{
      .mean = dataset.mean, .sigma = dataset.sigma, .max = dataset.max_length, .samples = kSteps * batch_size};
  task.max_length = dataset.max_length;
  task.adapter.rank = rank;
  task.adapter.alpha = static_cast<double>(2 * rank);
  task.adapter.targets = {true, true, true, true};
  task.global_batch_size = batch_size;
  task.steps = kSteps;
  return task;
}

}  // namespace

std::vector<std::string> known_datasets() {
  std::vector<std::string> names;
  for (const KnownDataset& known : kKnown) names.emplace_back(known.name);
  return names;
}

std::vector<workload::Workload> configured_tasks(const Configurations& wanted) {
  workload::Workload all;
  all.file = "configurations";
  for (const std::string& name : wanted.datasets) {
    const KnownDataset& dataset = dataset_of(name);
    for (const std::int64_t batch_size : wanted.batch_sizes) {
      if (batch_size < 1) throw error("a batch of {} samples is not usable; give 1 or more", batch_size);
      for (const std::int64_t rank : wanted.ranks) {
        if (rank < 1) throw error("an adapter of rank {} is not usable; give 1 or more", rank);
        all.tasks.push_back(task_of(dataset, batch_size, rank));
      }
    }
  }
  std::vector<workload::Workload> of_backbones;
  for (const std::string& backbone : wanted.backbones) {
    workload::Workload& of_backbone = of_backbones.emplace_back(all);
    of_backbone.backbone_reference = backbone;
    of_backbone.backbone = costmodel::builtin_backbone(backbone);
  }
  if (of_backbones.empty() || all.tasks.empty())
    throw error("no configurations; give at least one backbone, dataset, batch size and rank");
  return of_backbones;
}

}  // namespace braid::sim
