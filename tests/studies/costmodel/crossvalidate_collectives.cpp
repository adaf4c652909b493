#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "base/error.h"
#include "studies/costmodel/crossvalidate.h"
#include "studies/costmodel/reference_collectives.h"

namespace braid::costmodel::studies {
namespace {

constexpr double kLarge = 1e6;

/// Every other size of each collective and group is kept for judging.
void split(std::vector<CollectivePoint> points, std::vector<CollectivePoint>& fitted,
           std::vector<CollectivePoint>& held_out) {
  std::stable_sort(points.begin(), points.end(), [](const CollectivePoint& a, const CollectivePoint& b) {
    return std::tuple(a.op, a.ranks, a.bytes) < std::tuple(b.op, b.ranks, b.bytes);
  });
  for (std::size_t i = 0, place = 0; i < points.size(); ++i, ++place) {
    if (i > 0 && (points[i].op != points[i - 1].op || points[i].ranks != points[i - 1].ranks)) place = 0;
    (place % 2 == 0 ? fitted : held_out).push_back(points[i]);
  }
}

void crossvalidate_link(const ReferenceCollectives& reference) {
  std::vector<CollectivePoint> fitted, held_out;
  split(reference.points, fitted, held_out);
  const CollectiveCoefficients coefficients = fit_collectives(fitted, reference.link);
  const auto error = [&](const CollectivePoint& point) {
    const double predicted = collective_seconds(coefficients, reference.link, point.op, point.bytes, point.ranks);
    return std::abs(predicted / point.seconds - 1);
  };
  fmt::print("{}, {}, {}: every other size fitted, the others predicted\n", reference.network, reference.link.name,
             reference.points.front().op == Operator::send_recv ? "messages" : "rings");
  fmt::print("  launch {:.3g} s, hop {:.3g} s, before saturation {:.3g}, saturated {:.3g}\n",
             coefficients.launch_seconds, coefficients.hop_seconds, coefficients.before_saturation,
             coefficients.saturated);
  print_error_header();
  std::vector<double> of_fitted;
  for (const CollectivePoint& point : fitted) of_fitted.push_back(error(point));
  print_errors("fitted", of_fitted);
  std::map<std::string, std::vector<double>> groups;
  std::vector<double> all;
  for (const CollectivePoint& point : held_out) {
    all.push_back(error(point));
    groups[fmt::format("{}, {} ranks", name(point.op), point.ranks)].push_back(all.back());
    groups[point.bytes < kLarge ? "predicted, below 1 MB" : "predicted, 1 MB and more"].push_back(all.back());
  }
  print_errors("predicted", all);
  for (const auto& [what, errors] : groups) print_errors(what, errors);
}

}  // namespace

void crossvalidate_collectives(const std::filesystem::path& csv) {
  const auto references = read_reference_collectives(csv);
  if (references.empty()) throw error("{}: the wire of no row is known; give Vidur's networks", csv.string());
  for (const ReferenceCollectives& reference : references) crossvalidate_link(reference);
}

}  // namespace braid::costmodel::studies
