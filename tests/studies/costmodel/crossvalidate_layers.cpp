#include <cmath>
#include <map>

#include <fmt/core.h>

#include "base/statistics.h"
#include "costmodel/profile/cost_model.h"
#include "studies/costmodel/crossvalidate.h"
#include "studies/costmodel/mlora_facts.h"
#include "studies/costmodel/reference_layers.h"

namespace braid::costmodel::studies {
namespace {

constexpr const char* kGpu = "a100-40";
constexpr std::int64_t kFittedShards = 8;

CostModel model(double exposed_launch_seconds) {
  return CostModel(lobra_profile(exposed_launch_seconds));
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

void print_table(const std::vector<ReferenceLayer>& layers, const CostModel& cost) {
  fmt::print("  {:28} {:>6} {:>10} {:>10} {:>10} {:>10}\n", "", "rows", "mean", "median", "95 %", "bias");
  std::map<std::string, Errors> groups;
  Errors all;
  for (const ReferenceLayer& layer : layers) {
    const double error = lobra_layer_seconds(cost, layer) / layer.seconds - 1;
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

}  // namespace

void crossvalidate_layers(const std::filesystem::path& csv) {
  const std::vector<ReferenceLayer> layers = read_reference_layers(csv);
  fmt::print("layers of llama2-7b with LoRA on {}, from operators alone, were the host to run ahead of the GPU\n",
             kGpu);
  print_table(layers, model(0));
  const double eager = exposed_launch_seconds();
  fmt::print("likewise, with launches that the GPU waits for, {:.1f} us each, by mLoRA's figure 14\n", 1e6 * eager);
  print_table(layers, model(eager));
  std::vector<ReferenceLayer> fitted, others;
  for (const ReferenceLayer& layer : layers) (layer.tp == kFittedShards ? fitted : others).push_back(layer);
  if (fitted.empty() || others.empty()) return;
  const double exposed = fitted_launch_seconds(fitted);
  fmt::print("the others, with {:.1f} us a launch, fitted on the rows of {} shards\n", 1e6 * exposed, kFittedShards);
  print_table(others, model(exposed));
}

void crossvalidate_capacities(const std::filesystem::path& csv) {
  const std::vector<ReferenceCapacity> rows = read_reference_capacities(csv);
  const Bytes memory = device_of(kGpu).memory_bytes;
  fmt::print("most tokens a microbatch of llama2-7b with LoRA on {}, 2 pp microbatches alive; nothing fitted\n", kGpu);
  fmt::print("{:>3} {:>3} {:>10} {:>10} {:>16} {:>16}\n", "tp", "pp", "measured", "predicted", "GB at measured",
             "GB at double");
  int alike = 0;
  for (const ReferenceCapacity& row : rows) {
    const std::int64_t predicted = lobra_most_tokens(row.tp, row.pp, memory);
    alike += predicted == row.most_tokens ? 1 : 0;
    fmt::print("{:>3} {:>3} {:>10} {:>10} {:>16.1f} {:>16.1f}\n", row.tp, row.pp, row.most_tokens, predicted,
               static_cast<double>(lobra_peak_bytes(row.tp, row.pp, row.most_tokens)) / 1e9,
               static_cast<double>(lobra_peak_bytes(row.tp, row.pp, 2 * row.most_tokens)) / 1e9);
  }
  fmt::print("{} of {} alike\n", alike, rows.size());
}

}  // namespace braid::costmodel::studies
