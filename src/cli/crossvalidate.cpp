#include "cli/crossvalidate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/statistics.h"
#include "costmodel/reference_points.h"

namespace braid::cli {
namespace {

using costmodel::GemmPoint;
using costmodel::ReferenceLinear;

/// Fewer tokens than this are decoding's, which fine-tuning never does.
constexpr std::int64_t kFewestTokens = 64;
constexpr std::string_view kFitted = "llama2-7b";

/// |predicted − measured| / measured.
std::vector<double> errors_of(const std::vector<ReferenceLinear>& linears, const costmodel::Device& device,
                              const costmodel::GemmCoefficients& coefficients) {
  std::vector<double> errors;
  for (const ReferenceLinear& linear : linears) {
    const double predicted =
        costmodel::gemm_seconds(device, costmodel::DataType::bf16, coefficients, linear.point.shape);
    errors.push_back(std::abs(predicted / linear.point.seconds - 1));
  }
  return errors;
}

void print_errors(const std::string& what, const std::vector<double>& errors) {
  fmt::print("  {:24} {:>7} {:>8.1f} % {:>8.1f} %\n", what, errors.size(), 100 * median(errors),
             100 * quantile(errors, 0.95));
}

template <typename Keep>
std::vector<ReferenceLinear> those(const std::vector<ReferenceLinear>& linears, const Keep& keep) {
  std::vector<ReferenceLinear> kept;
  std::copy_if(linears.begin(), linears.end(), std::back_inserter(kept), keep);
  return kept;
}

void print_coefficients(const costmodel::GemmCoefficients& coefficients) {
  fmt::print(
      "  launch {:.3g} s, block {:.3g} s, bandwidth {:.3f}, wave rounding {:.3f}, split {:.3f}, cache {:.3f}\n  tiles",
      coefficients.launch_seconds, coefficients.block_seconds, coefficients.bandwidth_efficiency,
      coefficients.wave_rounding, coefficients.split_cost, coefficients.cache_bandwidth);
  for (std::size_t i = 0; i < costmodel::kGemmTiles.size(); ++i)
    fmt::print(" {}x{} {:.3f}", costmodel::kGemmTiles[i].rows, costmodel::kGemmTiles[i].columns,
               coefficients.tile_efficiency[i]);
  fmt::print("\n");
}

}  // namespace

void crossvalidate(const std::filesystem::path& csv) {
  const std::vector<ReferenceLinear> all =
      those(costmodel::read_reference_linears(csv),
            [](const ReferenceLinear& linear) { return linear.point.shape.rows >= kFewestTokens; });
  std::set<std::string> gpus;
  for (const ReferenceLinear& linear : all) gpus.insert(linear.gpu);
  for (const std::string& gpu : gpus) {
    const costmodel::Device& device = costmodel::device_of(gpu);
    const auto here = those(all, [&](const ReferenceLinear& linear) { return linear.gpu == gpu; });
    const auto fitted = those(here, [](const ReferenceLinear& linear) { return linear.backbone == kFitted; });
    const auto held_out = those(here, [](const ReferenceLinear& linear) { return linear.backbone != kFitted; });
    if (fitted.empty() || held_out.empty())
      throw error("{}: {} has layers of one backbone only; give a table with llama2-7b and another", csv.string(), gpu);
    std::vector<GemmPoint> points;
    for (const ReferenceLinear& linear : fitted) points.push_back(linear.point);
    const costmodel::GemmCoefficients coefficients = costmodel::fit_gemm(points, device, costmodel::DataType::bf16);
    fmt::print("{}: linear layers fitted on {}, predicted on the other backbone\n", device.name, kFitted);
    print_coefficients(coefficients);
    fmt::print("  {:24} {:>7} {:>10} {:>10}\n", "", "points", "median", "95 %");
    print_errors("fitted", errors_of(fitted, device, coefficients));
    print_errors("predicted", errors_of(held_out, device, coefficients));
    std::map<std::int64_t, std::vector<ReferenceLinear>> by_tp, by_tokens;
    for (const ReferenceLinear& linear : held_out) {
      by_tp[linear.tp].push_back(linear);
      by_tokens[linear.point.shape.rows].push_back(linear);
    }
    for (const auto& [tp, linears] : by_tp)
      print_errors(fmt::format("predicted, tp {}", tp), errors_of(linears, device, coefficients));
    for (const auto& [tokens, linears] : by_tokens)
      print_errors(fmt::format("predicted, {} tokens", tokens), errors_of(linears, device, coefficients));
  }
}

}  // namespace braid::cli
