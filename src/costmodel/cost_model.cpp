#include "costmodel/cost_model.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "costmodel/collective_model.h"

namespace braid::costmodel {
namespace {

bool is_adapter(Operator op) {
  return op == Operator::lora || op == Operator::lora_dropout;
}

std::string describe(const OperatorShape& shape) {
  std::vector<std::int64_t> numbers;
  for (const std::int64_t number : shape) {
    if (number != 0) numbers.push_back(number);
  }
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

/// Points with the same work become their mean. `points` are sorted.
template <typename Curve>
Curve one_a_place(const Curve& points) {
  Curve merged;
  int alike = 0;
  for (const auto& point : points) {
    if (merged.empty() || merged.back().work != point.work) {
      merged.push_back(point);
      alike = 1;
    } else {
      ++alike;
      merged.back().seconds += (point.seconds - merged.back().seconds) / alike;
    }
  }
  return merged;
}

}  // namespace

CostModel::CostModel(Profile profile) : profile_(std::move(profile)) {
  for (const ProfileEntry& entry : profile_.entries) {
    // Shapes are those of one shard, so that its tp says nothing more; other data types are other machines.
    if (entry.dtype != name(profile_.dtype)) continue;
    const bool attends = entry.op == Operator::attention;
    // Attention was measured on whole sequences of one length; its curve is the time of one of them.
    const double sequences =
        attends ? static_cast<double>(entry.tokens) / static_cast<double>(std::max<std::int64_t>(entry.context, 1)) : 1;
    const double work = static_cast<double>(attends ? entry.context : entry.tokens);
    curves_[{entry.op, entry.pass, entry.shape}].push_back({work, entry.seconds / std::max(sequences, 1.0)});
  }
  if (!profile_.device.empty()) roofline_.emplace(device_of(profile_.device), profile_.dtype);
  for (auto& [key, points] : curves_) {
    std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.work < b.work; });
    points = one_a_place(points);
  }
  if (const auto launch = curves_.find({Operator::launch, Pass::forward, {}}); launch != curves_.end())
    profile_.launch_seconds = launch->second.front().seconds;
}

Estimate CostModel::estimate(std::span<const OperatorCall> calls) const {
  Estimate total;
  double host = 0, device = 0;  // of what the roofline answers
  for (std::size_t first = 0; first < calls.size();) {
    std::size_t last = first + 1;
    while (last < calls.size() && calls[last].beside) ++last;
    const Estimate one = last == first + 1 ? estimate(calls[first]) : side_by_side(calls.subspan(first, last - first));
    total += one;
    if (is_derived(calls[first])) {
      host += calls[first].count * roofline_->launches(calls[first]) * profile_.launch_seconds;
      device += one.seconds;
    }
    first = last;
  }
  const double waited = std::max(0.0, host - device);
  total += {waited, waited};
  return total;
}

/// MuxTune Eq. 3: the sum of utilization times latency, yet no less than the longest.
Estimate CostModel::side_by_side(std::span<const OperatorCall> calls) const {
  Estimate weighted, longest;
  for (const OperatorCall& call : calls) {
    const Estimate alone = estimate(call);
    // What was measured says nothing of its utilization: it is taken to be full.
    const double share = is_derived(call) ? roofline_->utilization(call) : 1;
    weighted += {share * alone.seconds, share * alone.extrapolated_seconds};
    if (alone.seconds > longest.seconds) longest = alone;
  }
  return weighted.seconds > longest.seconds ? weighted : longest;
}

namespace {

template <typename Curve>
Estimate on_curve(const Curve& points, double work, double power) {
  if (work <= 0) return {};
  if (work < points.front().work) return {points.front().seconds, points.front().seconds};
  if (work > points.back().work) {
    // Past the last point: the last slope for linear work (overheads stay what they are), proportion for attention.
    double beyond = points.back().seconds * std::pow(work / points.back().work, power);
    if (power == 1 && points.size() > 1) {
      const auto& a = points[points.size() - 2];
      const auto& b = points.back();
      beyond = b.seconds + std::max(0.0, (b.seconds - a.seconds) / (b.work - a.work)) * (work - b.work);
    }
    return {beyond, beyond};
  }
  const auto above = std::lower_bound(points.begin(), points.end(), work,
                                      [](const auto& point, double key) { return point.work < key; });
  if (above->work == work) return {above->seconds, 0};
  const auto below = std::prev(above);
  const double share = (work - below->work) / (above->work - below->work);
  return {below->seconds + share * (above->seconds - below->seconds), 0};
}

Estimate times(Estimate once, double count) {
  return {once.seconds * count, once.extrapolated_seconds * count};
}

}  // namespace

Estimate CostModel::estimate(const OperatorCall& call) const {
  if (is_derived(call)) {
    const double seconds = derived_seconds(call);
    return times({seconds, seconds}, call.count);
  }
  if (call.op == Operator::attention) return times(attention(call), call.count);
  if (is_adapter(call.op) && !curves_.contains({call.op, call.pass, call.shape})) {
    return times(adapter_between_ranks(call), call.count);
  }
  return times(on_curve(curve(call), static_cast<double>(call.tokens), 1), call.count);
}

bool CostModel::is_derived(const OperatorCall& call) const {
  return roofline_ && !curves_.contains({call.op, call.pass, call.shape});
}

double CostModel::derived_seconds(const OperatorCall& call) const {
  if (!is_collective(call.op)) return roofline_->seconds(call);
  const Interconnect& interconnect = profile_.interconnect;
  const std::int64_t ranks = std::max<std::int64_t>(call.shape[0], 2), nodes = std::max<std::int64_t>(call.shape[1], 1);
  const Link& slowest = nodes > 1 ? interconnect.inter_node : interconnect.intra_node;
  if (slowest.bandwidth_bytes_per_second <= 0)
    throw error("the profile of {} knows no link between {}; give a cluster with {}", profile_.device,
                nodes > 1 ? "nodes" : "GPUs", nodes > 1 ? "inter_node" : "intra_node");
  return collective_seconds(roofline_->device().generation, interconnect, call.op, static_cast<double>(call.tokens),
                            ranks, nodes);
}

/// A chunk with a prefix costs what its share of the causal triangle costs: t(context) − t(prefix).
Estimate CostModel::attention(const OperatorCall& call) const {
  const Curve& points = curve(call);
  Estimate whole = on_curve(points, static_cast<double>(call.context), 2);
  if (call.prefix > 0) {
    const Estimate prefix = on_curve(points, static_cast<double>(call.prefix), 2);
    whole.seconds = std::max(0.0, whole.seconds - prefix.seconds);
    whole.extrapolated_seconds = whole.seconds;
  }
  return whole;
}

const CostModel::Curve& CostModel::curve(const OperatorCall& call) const {
  const auto found = curves_.find({call.op, call.pass, call.shape});
  if (found != curves_.end()) return found->second;
  throw error("the profile has no '{}' {} of shape {}; it has: {}; measure one for this workload with `braid profile`",
              name(call.op), name(call.pass), describe(call.shape), known_shapes(call.op));
}

/// Linear between the nearest measured ranks of the same modules; level outside them, in proportion to rank above.
Estimate CostModel::adapter_between_ranks(const OperatorCall& call) const {
  const Curve* below = nullptr;
  const Curve* above = nullptr;
  std::int64_t rank_below = 0, rank_above = 0;
  for (const auto& [key, points] : curves_) {
    const auto& [op, pass, shape] = key;
    if (op != call.op || pass != call.pass) continue;
    if (shape[0] != call.shape[0] || shape[1] != call.shape[1] || shape[3] != call.shape[3]) continue;
    if (shape[2] < call.shape[2] && shape[2] > rank_below) below = &points, rank_below = shape[2];
    if (shape[2] > call.shape[2] && (rank_above == 0 || shape[2] < rank_above)) above = &points, rank_above = shape[2];
  }
  const auto tokens = static_cast<double>(call.tokens);
  if (!below && !above) return on_curve(curve(call), tokens, 1);
  if (!below) {
    const Estimate least = on_curve(*above, tokens, 1);
    return {least.seconds, least.seconds};
  }
  const Estimate low = on_curve(*below, tokens, 1);
  if (!above) {
    const double seconds = low.seconds * static_cast<double>(call.shape[2]) / static_cast<double>(rank_below);
    return {seconds, seconds};
  }
  const Estimate high = on_curve(*above, tokens, 1);
  const double share = static_cast<double>(call.shape[2] - rank_below) / static_cast<double>(rank_above - rank_below);
  const double seconds = low.seconds + share * (high.seconds - low.seconds);
  const bool beyond = low.extrapolated_seconds > 0 || high.extrapolated_seconds > 0;
  return {seconds, beyond ? seconds : 0};
}

OperatorShape CostModel::group_shape(Operator op, std::span<const std::int32_t> ranks) const {
  std::set<std::int64_t> nodes;
  for (const std::int32_t rank : ranks) nodes.insert(profile_.interconnect.node_of(rank));
  const auto members = static_cast<std::int64_t>(ranks.size()), spanned = static_cast<std::int64_t>(nodes.size());
  if (spanned > 1) return {members, spanned};
  return op == Operator::send_recv ? OperatorShape{} : OperatorShape{members};
}

std::string CostModel::known_shapes(Operator op) const {
  std::set<std::string> shapes;
  for (const auto& [key, points] : curves_) {
    if (std::get<0>(key) == op) shapes.insert(describe(std::get<2>(key)));
  }
  return shapes.empty() ? "none" : fmt::format("{}", fmt::join(shapes, " "));
}

}  // namespace braid::costmodel
