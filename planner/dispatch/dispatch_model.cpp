#include "planner/dispatch/dispatch_model.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace braid::planner {
namespace {

/// Where variables lie: the seconds first; then replica by replica its longest microbatch's seconds, and of each range
/// that it holds the number of sequences and whether they are more than one microbatch.
class DispatchVariables {
 public:
  DispatchVariables(std::span<const ReplicaSpeed> replicas, std::span<const RangeLoad> ranges) {
    std::int32_t next = 1;
    for (const ReplicaSpeed& replica : replicas) {
      longest_.push_back(next++);
      std::vector<std::int32_t>& places = places_.emplace_back();
      for (const RangeLoad& range : ranges) {
        const bool held = range.interval < replica.full.size() && range.sequences > 0;
        places.push_back(held ? next : kNone);
        if (held) next += 2;
      }
    }
  }

  static constexpr std::int32_t kNone = -1;
  std::int32_t longest(std::size_t replica) const { return longest_[replica]; }
  /// kNone: not held.
  std::int32_t count(std::size_t replica, std::size_t range) const { return places_[replica][range]; }
  std::int32_t several(std::size_t replica, std::size_t range) const { return places_[replica][range] + 1; }

 private:
  std::vector<std::int32_t> longest_;
  std::vector<std::vector<std::int32_t>> places_;
};

}  // namespace

milp::Model dispatch_model(std::span<const ReplicaSpeed> replicas, std::span<const RangeLoad> ranges,
                           double most_seconds) {
  const DispatchVariables places(replicas, ranges);
  milp::Model model("dispatch");
  model.add(milp::Variable{"seconds", 0, most_seconds, 1, false});
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    model.add(milp::Variable{fmt::format("replica{}_longest", r), 0, most_seconds, 0, false});
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if (places.count(r, i) == DispatchVariables::kNone) continue;
      const auto sequences = static_cast<double>(ranges[i].sequences);
      model.add(milp::Variable{fmt::format("replica{}_range{}", r, i), 0, sequences, 0, true});
      model.add(milp::Variable{fmt::format("replica{}_range{}_several", r, i), 0, 1, 0, true});
    }
  }
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].sequences == 0) continue;
    const auto sequences = static_cast<double>(ranges[i].sequences);
    milp::Row all{fmt::format("range{}_all", i), sequences, sequences, {}};
    for (std::size_t r = 0; r < replicas.size(); ++r) {
      if (places.count(r, i) != DispatchVariables::kNone) all.terms.push_back({places.count(r, i), 1});
    }
    model.add(std::move(all));
  }
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    const std::int32_t longest = places.longest(r);
    const auto others = static_cast<double>(replicas[r].stages - 1);
    milp::Row busy{fmt::format("replica{}_busy", r), -milp::kInfinity, 0, {{0, -1}, {longest, others}}};
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const std::int32_t count = places.count(r, i), several = places.several(r, i);
      if (count == DispatchVariables::kNone) continue;
      const double seconds = replicas[r].seconds_a_row(ranges[i].interval);
      busy.terms.push_back({count, seconds});
      if (replicas[r].stages == 1) continue;
      // The longest microbatch is as long as the sequences together, or as a full one where they are more than it
      // holds.
      const auto rows = static_cast<double>(replicas[r].full[ranges[i].interval].rows);
      const double beyond = std::max(0.0, static_cast<double>(ranges[i].sequences) - rows);
      const std::string name = fmt::format("replica{}_range{}", r, i);
      model.add(milp::Row{name + "_one", -milp::kInfinity, rows, {{count, 1}, {several, -beyond}}});
      model.add(milp::Row{
          name + "_part", 0, milp::kInfinity, {{longest, 1}, {count, -seconds}, {several, seconds * beyond}}});
      model.add(milp::Row{name + "_full", 0, milp::kInfinity, {{longest, 1}, {several, -seconds * rows}}});
    }
    model.add(std::move(busy));
  }
  return model;
}

std::vector<double> values_of(const Dispatched& dispatched, std::span<const ReplicaSpeed> replicas,
                              std::span<const RangeLoad> ranges, const milp::Model& model) {
  const DispatchVariables places(replicas, ranges);
  std::vector<double> values(model.variables().size(), 0.0);
  values[0] = dispatched.seconds;
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    double& longest = values[static_cast<std::size_t>(places.longest(r))];
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if (places.count(r, i) == DispatchVariables::kNone) continue;
      const ReplicaSpeed::Full& full = replicas[r].full[ranges[i].interval];
      const std::int64_t count = dispatched.counts[r][i];
      values[static_cast<std::size_t>(places.count(r, i))] = static_cast<double>(count);
      if (replicas[r].stages == 1) continue;
      values[static_cast<std::size_t>(places.several(r, i))] = count > full.rows ? 1 : 0;
      longest = std::max(
          longest, static_cast<double>(std::min(count, full.rows)) * replicas[r].seconds_a_row(ranges[i].interval));
    }
  }
  return values;
}

Dispatched dispatched_of(std::span<const double> values, std::span<const ReplicaSpeed> replicas,
                         std::span<const RangeLoad> ranges) {
  const DispatchVariables places(replicas, ranges);
  Dispatched dispatched;
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    std::vector<std::int64_t>& counts = dispatched.counts.emplace_back(ranges.size(), 0);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if (places.count(r, i) != DispatchVariables::kNone)
        counts[i] = std::llround(values[static_cast<std::size_t>(places.count(r, i))]);
    }
    dispatched.seconds = std::max(dispatched.seconds, replica_seconds(replicas[r], ranges, counts));
  }
  return dispatched;
}

SolvedDispatch solve_dispatch(std::span<const ReplicaSpeed> replicas, std::span<const RangeLoad> ranges,
                              const milp::Limits& limits) {
  SolvedDispatch best{dispatch_balanced(replicas, ranges)};
  Dispatched& dispatched = best.dispatched;
  if (dispatched.bound >= dispatched.seconds * (1 - limits.gap)) return best;
  const milp::Model model = dispatch_model(replicas, ranges, dispatched.seconds);
  const milp::Solution found = milp::solve(model, limits, values_of(dispatched, replicas, ranges, model));
  best.truncated = found.ended == milp::Ended::seconds;
  if (!found.found()) return best;
  Dispatched solved = dispatched_of(found.values, replicas, ranges);
  solved.bound = dispatched.bound;
  if (solved.seconds < dispatched.seconds) dispatched = std::move(solved);
  dispatched.bound = std::clamp(found.bound, dispatched.bound, dispatched.seconds);
  return best;
}

}  // namespace braid::planner
