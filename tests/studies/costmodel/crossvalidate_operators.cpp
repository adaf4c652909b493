#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <type_traits>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/statistics.h"
#include "studies/costmodel/crossvalidate.h"
#include "studies/costmodel/reference_points.h"

namespace braid::costmodel::studies {
namespace {

/// Fewer tokens than this are decoding's, which fine-tuning never does.
constexpr std::int64_t kFewestTokens = 64;
constexpr std::string_view kFitted = "llama2-7b";

template <typename Keep>
std::vector<ReferencePoint> those(const std::vector<ReferencePoint>& points, const Keep& keep) {
  std::vector<ReferencePoint> kept;
  std::copy_if(points.begin(), points.end(), std::back_inserter(kept), keep);
  return kept;
}

/// |predicted − measured| / measured of the points for which `predict` says something.
template <typename Predict>
std::vector<double> errors_of(const std::vector<ReferencePoint>& points, const Predict& predict) {
  std::vector<double> errors;
  for (const ReferencePoint& point : points) {
    if (const std::optional<double> predicted = predict(point))
      errors.push_back(std::abs(*predicted / point.seconds - 1));
  }
  return errors;
}

template <typename Key, typename Predict>
void print_by(const char* what, const std::vector<ReferencePoint>& points, const Key& key, const Predict& predict) {
  std::map<std::decay_t<decltype(key(points.front()))>, std::vector<ReferencePoint>> groups;
  for (const ReferencePoint& point : points) groups[key(point)].push_back(point);
  for (const auto& [value, group] : groups) {
    const std::vector<double> errors = errors_of(group, predict);
    if (!errors.empty()) print_errors(fmt::format("predicted, {}{}", value, what), errors);
  }
}

/// By operator, tensor-parallel degree and size.
template <typename Predict>
void print_by_all(const std::vector<ReferencePoint>& points, const Predict& predict) {
  print_by(
      "", points, [](const ReferencePoint& point) { return point.op; }, predict);
  print_by(
      " shards", points, [](const ReferencePoint& point) { return point.tp; }, predict);
  print_by(
      " tokens", points, [](const ReferencePoint& point) { return point.tokens; }, predict);
}

/// What the table does that no model may.
void print_facts(const std::vector<ReferencePoint>& all) {
  std::map<std::tuple<std::string, std::string, std::string, std::int64_t>, std::map<std::int64_t, double>> curves;
  for (const ReferencePoint& point : all)
    curves[{point.gpu, point.backbone, point.op, point.tp}][point.tokens] = point.seconds;
  int neighbours = 0, falls = 0;
  for (const auto& [key, curve] : curves) {
    for (auto point = std::next(curve.begin()); point != curve.end(); ++point) {
      ++neighbours;
      falls += point->second < std::prev(point)->second;
    }
  }
  int shards = 0, superlinear = 0;
  for (const ReferencePoint& point : all) {
    if (point.tp == 1 || !gemm_of(point)) continue;
    const auto whole = curves.find({point.gpu, point.backbone, point.op, 1});
    if (whole == curves.end() || !whole->second.contains(point.tokens)) continue;
    ++shards;
    superlinear += static_cast<double>(point.tp) * point.seconds < whole->second.at(point.tokens);
  }
  fmt::print("of {} neighbouring points {} fall; of {} shards of products {} are superlinear\n", neighbours, falls,
             shards, superlinear);
}

void print_coefficients(const GemmCoefficients& coefficients) {
  fmt::print(
      "  launch {:.3g} s, block {:.3g} s, block depth {:.1f}, rate {:.3f}, edges {:.2f}, bandwidth {:.3f}, wave "
      "rounding {:.3f}, split {:.3f}, cache {:.3f}\n",
      coefficients.launch_seconds, coefficients.block_seconds, coefficients.block_depth, coefficients.rate_efficiency,
      coefficients.edge_cost, coefficients.bandwidth_efficiency, coefficients.wave_rounding, coefficients.split_cost,
      coefficients.cache_bandwidth);
}

GemmCoefficients fitted_on(const std::vector<ReferencePoint>& points, const Device& device) {
  std::vector<GemmPoint> products;
  for (const ReferencePoint& point : points) {
    if (const auto gemm = gemm_of(point)) products.push_back(*gemm);
  }
  return fit_gemm(products, device, DataType::bf16);
}

auto predicted_with(const GemmCoefficients& coefficients, const Device& device) {
  return [=, &device](const ReferencePoint& point) -> std::optional<double> {
    const auto gemm = gemm_of(point);
    if (!gemm) return std::nullopt;
    return gemm_seconds(device, DataType::bf16, coefficients, gemm->shape);
  };
}

void crossvalidate_products(const Device& device, const std::vector<ReferencePoint>& all,
                            const std::vector<ReferencePoint>& fitted, const std::vector<ReferencePoint>& held_out) {
  const GemmCoefficients coefficients = fitted_on(fitted, device);
  fmt::print("{}: linear layers fitted on {}, predicted on the other backbone\n", device.name, kFitted);
  print_coefficients(coefficients);
  const auto predict = predicted_with(coefficients, device);
  print_error_header();
  print_errors("fitted", errors_of(fitted, predict));
  print_errors("predicted", errors_of(held_out, predict));
  print_errors("had they been fitted", errors_of(held_out, predicted_with(fitted_on(held_out, device), device)));
  print_by_all(held_out, predict);
  const GemmCoefficients shipped = fitted_on(all, device);
  fmt::print("{}: linear layers fitted on all backbones, which is what plans use\n", device.name);
  print_coefficients(shipped);
  print_error_header();
  print_errors(std::string(kFitted), errors_of(fitted, predicted_with(shipped, device)));
  print_errors("the other backbone", errors_of(held_out, predicted_with(shipped, device)));
}

/// Kernels of one kind; none where too few points are of it.
std::optional<StreamCoefficients> fitted_on(const std::vector<ReferencePoint>& points, StreamKind kind,
                                            const Device& device) {
  std::vector<StreamPoint> of_kind;
  for (const ReferencePoint& point : points) {
    if (const auto stream = stream_of(point); stream && stream->first == kind) of_kind.push_back(stream->second);
  }
  if (of_kind.size() < 3) return std::nullopt;
  return fit_stream(of_kind, device);
}

void print_coefficients(std::string_view name, const StreamCoefficients& coefficients) {
  fmt::print("  {}: launch {:.3g} s, in cache {:.2f}, beyond {:.2f}\n", name, coefficients.launch_seconds,
             coefficients.cached, coefficients.beyond_cache);
}

void crossvalidate_streams(const Device& device, const std::vector<ReferencePoint>& all,
                           const std::vector<ReferencePoint>& fitted, const std::vector<ReferencePoint>& held_out) {
  fmt::print("{}: kernels that move numbers, likewise\n", device.name);
  std::map<StreamKind, StreamCoefficients> known;
  for (int k = 0; k < kStreamKindCount; ++k) {
    const auto kind = static_cast<StreamKind>(k);
    const auto coefficients = fitted_on(fitted, kind, device);
    if (!coefficients) continue;
    known.emplace(kind, *coefficients);
    const auto predict = [&](const ReferencePoint& point) -> std::optional<double> {
      const auto stream = stream_of(point);
      if (!stream || stream->first != kind) return std::nullopt;
      return stream_seconds(device, *coefficients, stream->second.bytes);
    };
    print_coefficients(name(kind), *coefficients);
    print_errors("fitted", errors_of(fitted, predict));
    print_errors("predicted", errors_of(held_out, predict));
    print_coefficients("fitted on all", *fitted_on(all, kind, device));
  }
  print_by_all(held_out, [&](const ReferencePoint& point) -> std::optional<double> {
    const auto stream = stream_of(point);
    if (!stream || !known.contains(stream->first)) return std::nullopt;
    return stream_seconds(device, known.at(stream->first), stream->second.bytes);
  });
}

}  // namespace

void crossvalidate_operators(const std::filesystem::path& csv) {
  const std::vector<ReferencePoint> table = read_reference_points(csv);
  const std::vector<ReferencePoint> all =
      those(table, [](const ReferencePoint& point) { return point.tokens >= kFewestTokens; });
  if (all.empty()) throw error("{}: no row has {} tokens or more", csv.string(), kFewestTokens);
  std::set<std::string> gpus;
  for (const ReferencePoint& point : all) gpus.insert(point.gpu);
  for (const std::string& gpu : gpus) {
    const Device& device = device_of(gpu);
    const auto here = those(all, [&](const ReferencePoint& point) { return point.gpu == gpu; });
    const auto fitted = those(here, [](const ReferencePoint& point) { return point.backbone == kFitted; });
    const auto held_out = those(here, [](const ReferencePoint& point) { return point.backbone != kFitted; });
    if (fitted.empty() || held_out.empty())
      throw error("{}: {} has layers of one backbone only; give a table with llama2-7b and another", csv.string(), gpu);
    crossvalidate_products(device, here, fitted, held_out);
    crossvalidate_streams(device, here, fitted, held_out);
  }
  print_facts(table);
}

}  // namespace braid::costmodel::studies
