#include "costmodel/profile/cost_model.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/mixed_hash.h"
#include "costmodel/links/collective_model.h"
#include "costmodel/profile/isotonic.h"

namespace braid::costmodel {
namespace {

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

Estimate times(const Estimate& once, double count) {
  return {once.seconds * count, once.extrapolated_seconds * count};
}

}  // namespace

std::size_t CostModel::KeyHash::operator()(const Key& key) const {
  MixedHash hash(static_cast<int>(key.op) * 4 + static_cast<int>(key.pass));
  hash.add(key.chunk);
  for (const std::int64_t number : key.shape) hash.add(number);
  return hash.value();
}

CostModel::CostModel(Profile profile, Curves curves) : profile_(std::move(profile)), storage_(profile_.storage()) {
  if (!profile_.device.empty()) {
    const double own = profile_.overlap_slowdown;
    overlap_slowdown_ = own > 0 ? own : costmodel::overlap_slowdown(device_of(profile_.device));
  }
  if (profile_.device.empty()) best_rates_ = best_rates(profile_.entries, profile_.peak_flops);
  for (const ProfileEntry& entry : profile_.entries) {
    // Shapes are those of one shard, so that its tp says nothing more; other data types are other machines. What was
    // derived from a datasheet the roofline answers, which also knows launches and utilization.
    if (entry.dtype != name(profile_.dtype)) continue;
    if (!profile_.device.empty() && entry.source.starts_with(kDerived)) continue;
    if (entry.op != Operator::attention) {
      curves_[{entry.op, entry.pass, entry.shape}].push_back({static_cast<double>(entry.tokens), entry.seconds});
      continue;
    }
    // Measured on sequences, or chunks, of one length; a curve is the time of one of them.
    const double sequences = std::max(
        1.0, static_cast<double>(entry.tokens) / static_cast<double>(std::max<std::int64_t>(entry.chunk(), 1)));
    const bool whole = entry.prefix == 0;
    const auto work = static_cast<double>(whole ? entry.context : entry.prefix);
    curves_[{entry.op, entry.pass, entry.shape, whole ? 0 : entry.chunk()}].push_back(
        {work, entry.seconds / sequences});
  }
  if (!profile_.device.empty()) roofline_.emplace(profile_);
  for (auto& [key, points] : curves_) {
    std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.work < b.work; });
    points = one_a_place(points);
    if (curves == Curves::isotonic) fit(key, points);
    if (key.chunk > 0) chunks_[{key.op, key.pass, key.shape}].push_back(key.chunk);
  }
  for (auto& [key, lengths] : chunks_) std::sort(lengths.begin(), lengths.end());
  if (const auto launch = curves_.find({Operator::launch, Pass::forward, {}}); launch != curves_.end())
    profile_.launch_seconds = launch->second.front().seconds;
}

void CostModel::fit(const Key& key, Curve& points) {
  std::vector<double> measured;
  for (const Point& point : points) measured.push_back(point.seconds);
  const std::vector<double> fitted = isotonic(measured);
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i].seconds = fitted[i];
    const double share = measured[i] > 0 ? fitted[i] / measured[i] - 1 : 0;
    const auto work = static_cast<std::int64_t>(points[i].work);
    // Ties go to the least key, so that the order of the table does not show.
    const Departure& furthest = largest_departure_;
    const auto rank = [](const Departure& one) {
      return std::tuple(-std::abs(one.share), one.op, one.pass, one.shape, one.chunk, one.work);
    };
    if (const Departure here{key.op, key.pass, key.shape, key.chunk, work, share};
        share != 0 && rank(here) < rank(furthest))
      largest_departure_ = here;
  }
}

PassWork& PassWork::operator+=(const PassWork& other) {
  calls += other.calls;
  host_seconds += other.host_seconds;
  device_seconds += other.device_seconds;
  return *this;
}

Estimate PassWork::total() const {
  const double waited = std::max(0.0, host_seconds - device_seconds);
  Estimate total = calls;
  total += {waited, waited};
  return total;
}

PassWork CostModel::work(std::span<const OperatorCall> calls) const {
  PassWork work;
  for (std::size_t first = 0; first < calls.size();) {
    std::size_t last = first + 1;
    while (last < calls.size() && calls[last].beside) ++last;
    const std::span<const OperatorCall> launch = calls.subspan(first, last - first);
    const Group group = launch.front().op == Operator::attention ? sequences_together(launch) : side_by_side(launch);
    work.calls += times(group.together, group.derived ? 1 : profile_.pass_skew);
    work.host_seconds += group.launches * profile_.launch_seconds;
    if (group.derived) work.device_seconds += group.together.seconds;
    first = last;
  }
  return work;
}

/// MuxTune Eq. 3: the sum of utilization times latency, yet no less than the longest.
CostModel::Group CostModel::side_by_side(std::span<const OperatorCall> calls) const {
  Group group;
  Estimate weighted, longest;
  for (const OperatorCall& call : calls) {
    const Answer alone = answer(call);
    const Estimate whole = times(alone.once, call.count);
    weighted += times(whole, calls.size() > 1 ? alone.utilization : 1);
    if (whole.seconds > longest.seconds) longest = whole;
    // One launch holds the kernels of all.
    group.launches = std::max(group.launches, call.count * alone.launches);
    group.derived = group.derived || alone.derived;
  }
  group.together = weighted.seconds > longest.seconds ? weighted : longest;
  return group;
}

/// One launch attends within every sequence of a microbatch.
CostModel::Group CostModel::sequences_together(std::span<const OperatorCall> calls) const {
  Group group;
  AttentionWork work;
  for (const OperatorCall& call : calls) {
    const Answer alone = answer(call);
    group.together += times(alone.once, call.count);
    group.launches = std::max(group.launches, call.count * alone.launches);
    group.derived = group.derived || alone.derived;
    work += alone.attention;
  }
  if (group.derived && calls.size() > 1) {
    const double seconds =
        calls.front().count * (roofline_->seconds(work) + work.launches * profile_.exposed_launch_seconds);
    group.together = {seconds, seconds};
  }
  return group;
}

CallPrice CostModel::price(const OperatorCall& call) const {
  const Answer alone = answer(call);
  const double skew = alone.derived ? 1 : profile_.pass_skew;
  CallPrice price{skew * alone.once.seconds * call.count, call.count * alone.launches, alone.utilization};
  if (call.op == Operator::attention) {
    price.attention = alone.derived ? alone.attention : AttentionWork{skew * alone.once.seconds, 0, 0};
    price.attention.product_seconds *= call.count;
    price.attention.memory_seconds *= call.count;
  }
  return price;
}

double CostModel::attention_seconds(const AttentionWork& work, double layers) const {
  if (work.launches <= 0) return work.product_seconds;
  const AttentionWork one{work.product_seconds / layers, work.memory_seconds / layers, work.launches};
  return layers * (roofline_->seconds(one) + work.launches * profile_.exposed_launch_seconds);
}

Estimate CostModel::estimate(const OperatorCall& call) const {
  return times(answer(call).once, call.count);
}

CostModel::Answer CostModel::answer(const OperatorCall& call) const {
  if (const Curve* points = find(call)) {
    if (call.op == Operator::attention)
      return {times(attention(*points, call), static_cast<double>(call.sequences)), false};
    return {on_curve(*points, call, static_cast<double>(call.tokens)), false};
  }
  if (is_adapter(call.op) && call.op != Operator::ia3) {
    if (const std::optional<Estimate> between = adapter_between_ranks(call)) return {*between, false};
  }
  if (roofline_) {
    if (call.op == Operator::launch) return {{profile_.launch_seconds, profile_.launch_seconds}, true};
    if (is_collective(call.op)) {
      const double seconds = collective(call);
      return {{seconds, seconds}, true};
    }
    const Roofline::Cost cost = roofline_->cost(call);
    const double seconds = cost.seconds + cost.launches * profile_.exposed_launch_seconds;
    return {{seconds, seconds}, true, cost.launches, cost.utilization(), cost.attention};
  }
  refuse(call);
}

const CostModel::Curve* CostModel::find(const OperatorCall& call) const {
  const auto found = curves_.find({call.op, call.pass, call.shape});
  return found == curves_.end() ? nullptr : &found->second;
}

double CostModel::collective(const OperatorCall& call) const {
  const Interconnect& interconnect = profile_.interconnect;
  const std::int64_t ranks = std::max<std::int64_t>(call.shape[0], 2), nodes = std::max<std::int64_t>(call.shape[1], 1);
  const Link& slowest = nodes > 1 ? interconnect.inter_node : interconnect.intra_node;
  if (slowest.bandwidth_bytes_per_second <= 0)
    throw error("the profile of {} knows no link between {}; give a cluster with {}", profile_.device,
                nodes > 1 ? "nodes" : "GPUs", nodes > 1 ? "inter_node" : "intra_node");
  return collective_seconds(roofline_->device().generation, interconnect, call.op, static_cast<double>(call.tokens),
                            ranks, nodes);
}

Estimate CostModel::on_curve(const Curve& points, const OperatorCall& call, double work) const {
  if (work <= 0) return {};
  if (work < points.front().work) {
    // Attention in proportion to the length, so that chunks of a sample never come for nothing; the rest stays level.
    const double share = call.op == Operator::attention ? work / points.front().work : 1;
    return {share * points.front().seconds, share * points.front().seconds};
  }
  if (work > points.back().work) {
    const double seconds = beyond(points, call, work);
    return {seconds, seconds};
  }
  const auto above = std::lower_bound(points.begin(), points.end(), work,
                                      [](const Point& point, double key) { return point.work < key; });
  if (above->work == work) return {above->seconds, 0};
  const auto below = std::prev(above);
  const double share = (work - below->work) / (above->work - below->work);
  // Time over length is linear where time has a linear and a quadratic part.
  const double low = below->seconds / below->work, high = above->seconds / above->work;
  if (call.op == Operator::attention && low < high) return {work * (low + share * (high - low)), 0};
  return {below->seconds + share * (above->seconds - below->seconds), 0};
}

/// Past the last point.
double CostModel::beyond(const Curve& points, const OperatorCall& call, double work) const {
  const Point& last = points.back();
  const bool attends = call.op == Operator::attention;
  if (roofline_ && !is_collective(call.op)) {
    const auto derived = [&](double size) {
      OperatorCall sized = call;
      sized.tokens = static_cast<std::int64_t>(size);
      if (attends) sized.context = sized.tokens;
      sized.prefix = 0;
      return roofline_->seconds(sized);
    };
    if (const double at_last = derived(last.work); at_last > 0) return last.seconds * derived(work) / at_last;
  }
  // Overheads stay what they are, along the slope from the nearest point that took less; attention's scores grow with
  // the square.
  const auto before =
      std::find_if(points.rbegin(), points.rend(), [&](const Point& point) { return point.seconds < last.seconds; });
  if (attends || before == points.rend()) return last.seconds * std::pow(work / last.work, attends ? 2 : 1);
  // Overheads are never less than nothing, however two points lie.
  const double slope =
      std::min((last.seconds - before->seconds) / (last.work - before->work), last.seconds / last.work);
  return std::max(last.seconds + slope * (work - last.work), least_seconds(call, work));
}

/// At the best rates that were measured.
double CostModel::least_seconds(const OperatorCall& call, double tokens) const {
  const double flops = product_flops(call.op, call.pass, call.shape, tokens);
  const double bytes = moved_bytes(call.op, call.pass, call.shape, tokens);
  if (flops > 0 && best_rates_.flops_per_second > 0) return flops / best_rates_.flops_per_second;
  if (bytes > 0 && best_rates_.bytes_per_second > 0) return bytes / best_rates_.bytes_per_second;
  return 0;
}

Estimate CostModel::attention(const Curve& points, const OperatorCall& call) const {
  if (call.prefix > 0) {
    if (const std::optional<Estimate> measured = between_chunks(points, call)) return *measured;
  }
  Estimate whole = on_curve(points, call, static_cast<double>(call.context));
  if (call.prefix > 0) {
    // The chunk's share of the causal triangle: t(context) − t(prefix).
    const Estimate prefix = on_curve(points, call, static_cast<double>(call.prefix));
    whole.seconds = std::max(0.0, whole.seconds - prefix.seconds);
    whole.extrapolated_seconds = whole.seconds;
  }
  return whole;
}

/// Of chunks with prefixes: from the measured lengths on both sides, or in proportion to the nearest one.
std::optional<Estimate> CostModel::between_chunks(const Curve& whole, const OperatorCall& call) const {
  const auto measured = chunks_.find({call.op, call.pass, call.shape});
  if (measured == chunks_.end()) return std::nullopt;
  const std::vector<std::int64_t>& lengths = measured->second;
  const std::int64_t length = call.context - call.prefix;
  const auto above = std::lower_bound(lengths.begin(), lengths.end(), length);
  if (above != lengths.end() && *above == length) return chunk(whole, call, length);
  if (above == lengths.begin() || above == lengths.end()) {
    const std::int64_t nearest = above == lengths.end() ? lengths.back() : lengths.front();
    const Estimate told = chunk(whole, call, nearest);
    const double seconds = told.seconds * static_cast<double>(length) / static_cast<double>(nearest);
    return Estimate{seconds, seconds};
  }
  const auto below = static_cast<double>(*std::prev(above)), next = static_cast<double>(*above);
  const double share = (static_cast<double>(length) - below) / (next - below);
  const Estimate shorter = chunk(whole, call, *std::prev(above)), longer = chunk(whole, call, *above);
  const auto mean = [&](double low, double high) {
    return static_cast<double>(length) * ((1 - share) * low / below + share * high / next);
  };
  return Estimate{mean(shorter.seconds, longer.seconds),
                  mean(shorter.extrapolated_seconds, longer.extrapolated_seconds)};
}

/// A chunk of a measured length after the call's prefix; after none it is a whole sequence.
Estimate CostModel::chunk(const Curve& whole, const OperatorCall& call, std::int64_t measured) const {
  const Curve& points = curves_.at({call.op, call.pass, call.shape, measured});
  const auto prefix = static_cast<double>(call.prefix);
  const auto above = std::lower_bound(points.begin(), points.end(), prefix,
                                      [](const Point& point, double key) { return point.work < key; });
  if (above != points.end() && above->work == prefix) return {above->seconds, 0};
  const Estimate first = on_curve(whole, call, static_cast<double>(measured));
  const auto before = [&](auto point) { return point == points.begin() ? Point{0, first.seconds} : *std::prev(point); };
  const bool beyond = above == points.end();
  const Point high = beyond ? points.back() : *above, low = beyond ? before(std::prev(points.end())) : before(above);
  const double slope = std::max(0.0, high.seconds - low.seconds) / (high.work - low.work);
  const double seconds =
      beyond ? high.seconds + slope * (prefix - high.work) : low.seconds + slope * (prefix - low.work);
  const bool unknown = beyond || (low.work == 0 && first.extrapolated_seconds > 0);
  return {seconds, unknown ? seconds : 0};
}

/// Linear between the nearest measured ranks of the same modules; below the least, level; above the greatest, in
/// proportion to rank.
std::optional<Estimate> CostModel::adapter_between_ranks(const OperatorCall& call) const {
  const Curve* below = nullptr;
  const Curve* above = nullptr;
  std::int64_t rank_below = 0, rank_above = 0;
  for (const auto& [key, points] : curves_) {
    const OperatorShape& shape = key.shape;
    if (key.op != call.op || key.pass != call.pass) continue;
    if (shape[0] != call.shape[0] || shape[1] != call.shape[1] || shape[3] != call.shape[3]) continue;
    if (shape[2] < call.shape[2] && shape[2] > rank_below) below = &points, rank_below = shape[2];
    if (shape[2] > call.shape[2] && (rank_above == 0 || shape[2] < rank_above)) above = &points, rank_above = shape[2];
  }
  const auto tokens = static_cast<double>(call.tokens);
  // Where there is a roofline, only what lies between two measured ranks is better known than by it.
  if ((!below && !above) || (roofline_ && !(below && above))) return std::nullopt;
  if (!below) {
    const Estimate least = on_curve(*above, call, tokens);
    return Estimate{least.seconds, least.seconds};
  }
  const Estimate low = on_curve(*below, call, tokens);
  if (!above) {
    const double seconds = low.seconds * static_cast<double>(call.shape[2]) / static_cast<double>(rank_below);
    return Estimate{seconds, seconds};
  }
  const Estimate high = on_curve(*above, call, tokens);
  const double share = static_cast<double>(call.shape[2] - rank_below) / static_cast<double>(rank_above - rank_below);
  const double seconds = low.seconds + share * (high.seconds - low.seconds);
  const bool extrapolates = low.extrapolated_seconds > 0 || high.extrapolated_seconds > 0;
  return Estimate{seconds, extrapolates ? seconds : 0};
}

bool CostModel::measured(Operator op) const {
  return std::any_of(curves_.begin(), curves_.end(), [&](const auto& curve) { return curve.first.op == op; });
}

OperatorShape CostModel::group_shape(Operator op, std::span<const std::int32_t> ranks) const {
  const auto node_of = [&](std::int32_t rank) { return profile_.interconnect.node_of(rank); };
  std::vector<decltype(node_of(0))> nodes;
  for (const std::int32_t rank : ranks) {
    // Ranks mostly ascend.
    if (nodes.empty() || nodes.back() != node_of(rank)) nodes.push_back(node_of(rank));
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  const auto members = static_cast<std::int64_t>(ranks.size()), spanned = static_cast<std::int64_t>(nodes.size());
  if (spanned > 1) return {members, spanned};
  return op == Operator::send_recv ? OperatorShape{} : OperatorShape{members};
}

void CostModel::refuse(const OperatorCall& call) const {
  std::set<std::string> shapes, others;
  for (const auto& [key, points] : curves_) {
    if (key.op == call.op && key.pass == call.pass) shapes.insert(describe(key.shape));
    others.insert(fmt::format("{} {}", name(key.op), name(key.pass)));
  }
  const std::string known = shapes.empty() ? fmt::format("none, but: {}", fmt::join(others, ", "))
                                           : fmt::format("{}", fmt::join(shapes, " "));
  throw error("the profile has no '{}' {} of shape {}; it has: {}; measure one for this workload with `braid profile`",
              name(call.op), name(call.pass), describe(call.shape), known);
}

}  // namespace braid::costmodel
