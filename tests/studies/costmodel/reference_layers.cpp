#include "studies/costmodel/reference_layers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "studies/costmodel/reference_table.h"

namespace braid::costmodel::studies {
namespace {

constexpr const char* kBackbone = "llama2-7b";

}  // namespace

std::vector<ReferenceLayer> read_reference_layers(const std::filesystem::path& csv) {
  std::vector<ReferenceLayer> layers;
  constexpr std::int64_t kMostSequences = 1'000'000;
  for (const ReferenceRow& row : read_reference_table(csv, kReferenceLayerColumns)) {
    layers.push_back({row.integer(0), row.integer(2), row.integer(1), row.number(3) * 1e-3});
    if (layers.back().sequences > kMostSequences)
      throw error_at(row.file, row.line, fmt::format("{} sequences in a microbatch", row.text(2)), "give fewer");
  }
  return layers;
}

std::vector<ReferenceCapacity> read_reference_capacities(const std::filesystem::path& csv) {
  std::vector<ReferenceCapacity> capacities;
  const std::int64_t most_stages = builtin_backbone(kBackbone).layers;
  for (const ReferenceRow& row : read_reference_table(csv, kReferenceCapacityColumns)) {
    capacities.push_back({row.integer(0), row.integer(1), row.integer(3)});
    if (capacities.back().pp > most_stages)
      throw error_at(row.file, row.line, fmt::format("{} stages of {} layers", row.text(1), most_stages),
                     "give at most a stage a layer");
  }
  return capacities;
}

AdapterShape lobra_adapter() {
  AdapterShape adapter;
  adapter.rank = 8;
  adapter.alpha = 16;
  adapter.targets = costmodel::kSeparateModules;
  return adapter;
}

StageShape lobra_layer(std::int64_t tp) {
  return {1, false, false, tp, tp > 1};
}

MicrobatchLoad lobra_load(std::int64_t sequences, std::int64_t length) {
  MicrobatchLoad load;
  load.tokens = load.scored = sequences * length;
  load.sequences.assign(static_cast<std::size_t>(sequences), {0, length});
  load.tasks = {{lobra_adapter(), load.tokens}};
  return load;
}

Profile lobra_profile(double exposed_launch_seconds) {
  constexpr const char* kGpu = "a100-40";
  Profile profile = analytic_profile(kGpu, DataType::bf16);
  profile.interconnect.intra_node = named_link("nvlink", device_of(kGpu));
  profile.exposed_launch_seconds = exposed_launch_seconds;
  return profile;
}

double lobra_layer_seconds(const CostModel& cost, const ReferenceLayer& layer) {
  const BackboneShape backbone = builtin_backbone(kBackbone);
  const StageShape stage = lobra_layer(layer.tp);
  const MicrobatchLoad load = lobra_load(layer.sequences, layer.length);
  double seconds = 0;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    seconds += cost.estimate(stage_operators(backbone, stage, load, pass, cost.storage())).seconds;
    for (const OperatorCall& call : stage_collectives(backbone, stage, load, pass, cost.storage()))
      seconds += cost.estimate(call).seconds;
  }
  return seconds;
}

double fitted_launch_seconds(std::span<const ReferenceLayer> layers) {
  constexpr double kProbe = 1e-6;
  const CostModel ahead(lobra_profile(0)), waiting(lobra_profile(kProbe));
  std::vector<double> predicted, slopes;
  for (const ReferenceLayer& layer : layers) {
    predicted.push_back(lobra_layer_seconds(ahead, layer));
    slopes.push_back((lobra_layer_seconds(waiting, layer) - predicted.back()) / kProbe);
  }
  double best = 0, least = std::numeric_limits<double>::infinity();
  for (std::size_t candidate = 0; candidate < layers.size(); ++candidate) {
    const double launch = std::max(0.0, layers[candidate].seconds - predicted[candidate]) / slopes[candidate];
    double sum = 0;
    for (std::size_t i = 0; i < layers.size(); ++i)
      sum += std::abs((predicted[i] + launch * slopes[i]) / layers[i].seconds - 1);
    if (sum < least) best = launch, least = sum;
  }
  return best;
}

Bytes lobra_peak_bytes(std::int64_t tp, std::int64_t pp, std::int64_t tokens) {
  const BackboneShape backbone = builtin_backbone(kBackbone);
  Storage storage = gpu_storage(DataType::bf16);
  // Hetu, in which LobRA is written, has SwiGLU in one kernel.
  storage.fused_activation = true;
  const MicrobatchLoad load = lobra_load(1, tokens);
  Bytes fullest = 0;
  for (std::int64_t s = 0; s < pp; ++s) {
    const StageShape stage{backbone.layers * (s + 1) / pp - backbone.layers * s / pp, s == 0, s == pp - 1, tp, tp > 1};
    const Bytes rank = backbone_bytes(backbone, stage, storage) + storage.context +
                       adapter_bytes(backbone, lobra_adapter(), stage.layers) +
                       2 * pp * stash_bytes(backbone, stage, load, storage) +
                       std::max(workspace_bytes(backbone, stage, load, Pass::forward, storage),
                                workspace_bytes(backbone, stage, load, Pass::backward, storage));
    fullest = std::max(fullest, rank);
  }
  return fullest;
}

std::int64_t lobra_most_tokens(std::int64_t tp, std::int64_t pp, Bytes memory) {
  constexpr std::int64_t kMost = 1 << 20;
  std::int64_t most = 0;
  for (std::int64_t tokens = 1; tokens <= kMost && lobra_peak_bytes(tp, pp, tokens) <= memory; tokens *= 2)
    most = tokens;
  return most;
}

}  // namespace braid::costmodel::studies
