#include "costmodel/links/collective_model.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "costmodel/profile/least_squares.h"

namespace braid::costmodel {
namespace {

/// How often each byte passes a rank's link, in one direction, and over how many hops the first of them goes.
struct Wire {
  double passes = 1;
  double hops = 1;
};

Wire wire_of(Operator op, const Link& link, std::int64_t ranks) {
  const auto n = static_cast<double>(ranks);
  const bool adds = link.kind() == LinkKind::nvswitch_sharp;
  switch (op) {
    case Operator::send_recv:
      return {1, 1};
    case Operator::all_reduce:
      return adds ? Wire{std::min(1 + 1 / n, 2 * (n - 1) / n), 2} : Wire{2 * (n - 1) / n, 2 * (n - 1)};
    case Operator::reduce_scatter:
    case Operator::all_gather:
      return {(n - 1) / n, adds ? 1 : n - 1};
    default:
      break;
  }
  throw error("'{}' is not a collective; known: send_recv, all_reduce, reduce_scatter, all_gather", name(op));
}

/// Launch, hops, seconds on the wire before and after saturation.
std::array<double, 4> features(const Link& link, Operator op, double bytes, std::int64_t ranks) {
  const Wire wire = wire_of(op, link, ranks);
  const double passed = bytes * wire.passes;
  return {1, wire.hops, std::min(passed, kSaturatingBytes) / link.bandwidth_bytes_per_second,
          std::max(0.0, passed - kSaturatingBytes) / link.bandwidth_bytes_per_second};
}

}  // namespace

double collective_seconds(const CollectiveCoefficients& coefficients, const Link& link, Operator op, double bytes,
                          std::int64_t ranks) {
  if (bytes <= 0 || ranks <= 1) return 0;
  BRAID_CHECK(link.bandwidth_bytes_per_second > 0, "a message over the link '{}'", link.name);
  const auto [one, hops, before, after] = features(link, op, bytes, ranks);
  const double seconds = coefficients.launch_seconds + hops * coefficients.hop_seconds +
                         before * coefficients.before_saturation + after * coefficients.saturated;
  return std::max(seconds, link.latency_seconds + before + after);
}

double collective_seconds(Generation generation, const Interconnect& interconnect, Operator op, double bytes,
                          std::int64_t ranks, std::int64_t nodes) {
  const auto over = [&](const Link& link, Operator part, double size, std::int64_t members) {
    return collective_seconds(collective_coefficients(generation, link, part), link, part, size, members);
  };
  if (nodes <= 1) return over(interconnect.intra_node, op, bytes, ranks);
  const double flat = over(interconnect.inter_node, op, bytes, ranks);
  const std::int64_t inside = ranks / nodes;
  if (op == Operator::send_recv || inside <= 1 || interconnect.intra_node.bandwidth_bytes_per_second <= 0) return flat;
  // The shares of a node's ranks follow one another over its link: together they are `bytes`.
  const double across = over(interconnect.inter_node, op, bytes, nodes);
  const Link& intra = interconnect.intra_node;
  double within = 0;
  if (op != Operator::all_gather) within += over(intra, Operator::reduce_scatter, bytes, inside);
  if (op != Operator::reduce_scatter) within += over(intra, Operator::all_gather, bytes, inside);
  return std::min(flat, across + within);
}

CollectiveCoefficients fit_collectives(std::span<const CollectivePoint> points, const Link& link) {
  const auto rows = static_cast<Eigen::Index>(points.size());
  Eigen::MatrixXd a(rows, 4);
  for (Eigen::Index i = 0; i < rows; ++i) {
    const CollectivePoint& point = points[static_cast<std::size_t>(i)];
    const std::array<double, 4> terms = features(link, point.op, point.bytes, point.ranks);
    // Each row is divided by its measured time, so that errors are relative.
    for (Eigen::Index k = 0; k < 4; ++k) a(i, k) = terms[static_cast<std::size_t>(k)] / point.seconds;
  }
  // Squares weighted by 1 / |error| are absolute errors; weights and solution settle within a few rounds.
  constexpr int kRounds = 30;
  constexpr double kLeastError = 1e-3;
  Eigen::VectorXd weights = Eigen::VectorXd::Ones(rows), solution;
  for (int round = 0; round < kRounds; ++round) {
    solution = non_negative_least_squares(weights.asDiagonal() * a, weights);
    const Eigen::VectorXd errors = (a * solution - Eigen::VectorXd::Ones(rows)).cwiseAbs();
    weights = errors.cwiseMax(kLeastError).cwiseSqrt().cwiseInverse();
  }
  return {solution[0], solution[1], solution[2], solution[3]};
}

double overlap_slowdown(const Device& device, std::int64_t blocks) {
  const std::int64_t left = std::max<std::int64_t>(1, device.multiprocessors - blocks);
  return static_cast<double>(device.multiprocessors) / static_cast<double>(left);
}

}  // namespace braid::costmodel
