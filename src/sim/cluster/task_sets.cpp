#include "sim/cluster/task_sets.h"

#include <numeric>

#include "base/error.h"

namespace braid::sim {

TaskSets::TaskSets(std::vector<double> step_tokens, const Limits& limits, Estimate estimate)
    : step_tokens_(std::move(step_tokens)), limits_(limits), estimate_(std::move(estimate)) {
  const std::size_t kinds = step_tokens_.size();
  most_of_.assign(kinds, 0);
  Set& empty = sets_.emplace_back();
  empty.counts.assign(kinds, 0);
  empty.with.assign(kinds, kUnknown);
  empty.without.assign(kinds, kNone);
  by_counts_.emplace(empty.counts, kEmpty);
}

SetIndex TaskSets::with(SetIndex set, KindIndex kind) {
  const auto place = static_cast<std::size_t>(kind);
  if (const SetIndex known = at(set).with[place]; known != kUnknown) return known;
  SetIndex larger = kNone;
  if (at(set).tasks < limits_.most_tasks) {
    std::vector<std::int32_t> counts = at(set).counts;
    ++counts[place];
    larger = find(counts);
    if (larger != kNone && too_slow(larger)) larger = kNone;
  }
  return sets_[static_cast<std::size_t>(set)].with[place] = larger;
}

SetIndex TaskSets::without(SetIndex set, KindIndex kind) {
  const auto place = static_cast<std::size_t>(kind);
  if (const SetIndex known = at(set).without[place]; known != kUnknown) return known;
  std::vector<std::int32_t> counts = at(set).counts;
  --counts[place];
  SetIndex smaller = find(counts);
  // An estimate need not know every layout that fits; the larger set's is one.
  if (smaller == kNone) smaller = by_counts_[counts] = add(counts, at(set).rate);
  return sets_[static_cast<std::size_t>(set)].without[place] = smaller;
}

std::int32_t TaskSets::most_of(KindIndex kind) {
  std::int32_t& most = most_of_[static_cast<std::size_t>(kind)];
  if (most > 0) return most;
  std::int32_t fit = 0;
  for (SetIndex set = with(kEmpty, kind); set != kNone; set = with(set, kind)) ++fit;
  return most = fit;
}

SetIndex TaskSets::find(const std::vector<std::int32_t>& counts) {
  const auto [known, is_new] = by_counts_.try_emplace(counts, kNone);
  if (!is_new) return known->second;
  if (const std::optional<SetRate> rate = estimate_(counts)) known->second = add(counts, *rate);
  return known->second;
}

SetIndex TaskSets::add(const std::vector<std::int32_t>& counts, SetRate rate) {
  BRAID_CHECK(rate.step_seconds > 0, "a step of {} s", rate.step_seconds);
  Set set;
  set.counts = counts;
  set.tasks = std::accumulate(counts.begin(), counts.end(), 0);
  set.rate = rate;
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    set.tokens_per_second += counts[kind] * step_tokens_[kind] / rate.step_seconds;
    set.without.push_back(counts[kind] > 0 ? kUnknown : kNone);
  }
  set.with.assign(counts.size(), kUnknown);
  sets_.push_back(std::move(set));
  return static_cast<SetIndex>(sets_.size()) - 1;
}

bool TaskSets::too_slow(SetIndex set) {
  if (limits_.most_slowdown == std::numeric_limits<double>::infinity()) return false;
  for (KindIndex kind = 0; kind < kinds(); ++kind) {
    if (at(set).counts[static_cast<std::size_t>(kind)] == 0) continue;
    std::vector<std::int32_t> alone(step_tokens_.size(), 0);
    alone[static_cast<std::size_t>(kind)] = 1;
    const SetIndex single = find(alone);
    if (single != kNone && step_seconds(set) > limits_.most_slowdown * step_seconds(single)) return true;
  }
  return false;
}

TaskSets exclusive_sets() {
  return {{0.0}, {.most_tasks = 1}, [](const std::vector<std::int32_t>&) { return SetRate{1, 0}; }};
}

}  // namespace braid::sim
