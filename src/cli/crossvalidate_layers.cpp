#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/core.h>

#include "base/statistics.h"
#include "cli/crossvalidate.h"
#include "costmodel/cost_model.h"
#include "costmodel/reference_layers.h"

namespace braid::cli {
namespace {

using costmodel::Pass;
using costmodel::ReferenceLayer;

constexpr const char* kGpu = "a100-40";
constexpr std::int64_t kFittedShards = 8;

costmodel::CostModel model() {
  costmodel::Profile profile = costmodel::analytic_profile(kGpu, costmodel::DataType::bf16);
  profile.interconnect.intra_node = costmodel::named_link("nvlink", costmodel::device_of(kGpu));
  return costmodel::CostModel(profile);
}

double predicted_seconds(const costmodel::CostModel& cost, const ReferenceLayer& layer) {
  const costmodel::BackboneShape backbone = costmodel::builtin_backbone("llama2-7b");
  const costmodel::StageShape stage = costmodel::lobra_layer(layer.tp);
  const costmodel::MicrobatchLoad load = costmodel::lobra_load(layer.sequences, layer.length);
  double seconds = 0;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    seconds += cost.estimate(stage_operators(backbone, stage, load, pass)).seconds;
    for (const auto& call : stage_collectives(backbone, stage, load, pass, bytes_of(costmodel::DataType::bf16)))
      seconds += cost.estimate(call).seconds;
  }
  return seconds;
}

struct Errors {
  std::vector<double> size, sign;
};

void print(const std::string& what, const Errors& errors) {
  double mean = 0, bias = 0;
  for (const double error : errors.size) mean += error / static_cast<double>(errors.size.size());
  for (const double error : errors.sign) bias += error / static_cast<double>(errors.sign.size());
  fmt::print("  {:28} {:>6} {:>8.1f} % {:>8.1f} % {:>8.1f} % {:>+8.1f} %\n", what, errors.size.size(), 100 * mean,
             100 * median(errors.size), 100 * quantile(errors.size, 0.95), 100 * bias);
}

/// `added` is a fixed cost of a layer's pass that no operator explains.
void print_table(const std::vector<ReferenceLayer>& layers, const costmodel::CostModel& cost, double added) {
  fmt::print("  {:28} {:>6} {:>10} {:>10} {:>10} {:>10}\n", "", "rows", "mean", "median", "95 %", "bias");
  std::map<std::string, Errors> groups;
  Errors all;
  for (const ReferenceLayer& layer : layers) {
    const double error = (predicted_seconds(cost, layer) + added) / layer.seconds - 1;
    const std::int64_t tokens = layer.tokens();
    const char* size = tokens < 1024   ? "tokens below 1024"
                       : tokens < 8192 ? "tokens 1024 to 8191"
                                       : "tokens 8192 and more";
    for (Errors* errors : {&all, &groups[fmt::format("{} shards", layer.tp)], &groups[size]}) {
      errors->size.push_back(std::abs(error));
      errors->sign.push_back(error);
    }
  }
  print("all", all);
  for (const auto& [what, errors] : groups) print(what, errors);
}

/// The fixed cost of a layer that makes the sum of relative errors least: one of the rows' own differences.
double fitted_cost(const std::vector<ReferenceLayer>& layers, const costmodel::CostModel& cost) {
  std::vector<double> predicted;
  for (const ReferenceLayer& layer : layers) predicted.push_back(predicted_seconds(cost, layer));
  double best = 0, least = std::numeric_limits<double>::infinity();
  for (std::size_t candidate = 0; candidate < layers.size(); ++candidate) {
    const double added = std::max(0.0, layers[candidate].seconds - predicted[candidate]);
    double sum = 0;
    for (std::size_t i = 0; i < layers.size(); ++i) sum += std::abs((predicted[i] + added) / layers[i].seconds - 1);
    if (sum < least) best = added, least = sum;
  }
  return best;
}

}  // namespace

void crossvalidate_layers(const std::filesystem::path& csv) {
  const std::vector<ReferenceLayer> layers = costmodel::read_reference_layers(csv);
  const costmodel::CostModel cost = model();
  fmt::print("layers of llama2-7b with LoRA on {}, from operators alone; nothing fitted\n", kGpu);
  print_table(layers, cost, 0);
  std::vector<ReferenceLayer> fitted, others;
  for (const ReferenceLayer& layer : layers) (layer.tp == kFittedShards ? fitted : others).push_back(layer);
  if (fitted.empty() || others.empty()) return;
  const double added = fitted_cost(fitted, cost);
  fmt::print(
      "the others, with one constant fitted on the rows of {} shards: {:.2f} ms a layer that no operator explains\n",
      kFittedShards, 1e3 * added);
  print_table(others, cost, added);
}

void crossvalidate_capacities(const std::filesystem::path& csv) {
  const std::vector<costmodel::ReferenceCapacity> rows = costmodel::read_reference_capacities(csv);
  const Bytes memory = costmodel::device_of(kGpu).memory_bytes;
  fmt::print("most tokens a microbatch of llama2-7b with LoRA on {}, 2 pp microbatches alive; nothing fitted\n", kGpu);
  fmt::print("{:>3} {:>3} {:>10} {:>10} {:>16} {:>16}\n", "tp", "pp", "measured", "predicted", "GB at measured",
             "GB at double");
  int alike = 0;
  for (const costmodel::ReferenceCapacity& row : rows) {
    const std::int64_t predicted = costmodel::lobra_most_tokens(row.tp, row.pp, memory);
    alike += predicted == row.most_tokens ? 1 : 0;
    fmt::print("{:>3} {:>3} {:>10} {:>10} {:>16.1f} {:>16.1f}\n", row.tp, row.pp, row.most_tokens, predicted,
               static_cast<double>(costmodel::lobra_peak_bytes(row.tp, row.pp, row.most_tokens)) / 1e9,
               static_cast<double>(costmodel::lobra_peak_bytes(row.tp, row.pp, 2 * row.most_tokens)) / 1e9);
  }
  fmt::print("{} of {} alike\n", alike, rows.size());
}

}  // namespace braid::cli
