#include "sim/cluster/instances/task_sets.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace braid::sim {

TaskSets::TaskSets(std::vector<double> step_tokens, const Limits& limits, Estimate estimate,
                   std::vector<std::int32_t> sizes)
    : step_tokens_(std::move(step_tokens)), limits_(limits), estimate_(std::move(estimate)), sizes_(std::move(sizes)) {
  const std::size_t kinds = step_tokens_.size();
  for (std::size_t size = 0; size < sizes_.size(); ++size) {
    Set& empty = sets_.emplace_back();
    empty.counts.assign(kinds, 0);
    empty.size = size;
    empty.with.assign(kinds, kUnknown);
    empty.without.assign(kinds, kNone);
    known_.emplace(Key(empty.counts, size), static_cast<SetIndex>(size));
  }
}

std::size_t TaskSets::size_of(std::int64_t gpus) const {
  if (sizes_.front() == kAnyGpus) return 0;
  const auto size = std::lower_bound(sizes_.begin(), sizes_.end(), gpus);
  BRAID_CHECK(size != sizes_.end() && *size == gpus, "no instance has {} GPUs", gpus);
  return static_cast<std::size_t>(size - sizes_.begin());
}

SetIndex TaskSets::empty(std::int64_t gpus) const {
  return static_cast<SetIndex>(size_of(gpus));
}

SetIndex TaskSets::with(SetIndex set, KindIndex kind, std::size_t size) {
  const auto place = static_cast<std::size_t>(kind);
  const bool is_same_size = size == at(set).size;
  if (is_same_size && at(set).with[place] != kUnknown) return at(set).with[place];
  SetIndex larger = kNone;
  if (at(set).tasks < limits_.most_tasks) {
    Key key(at(set).counts, size);
    ++key.first[place];
    larger = find(key);
    if (larger != kNone && too_slow(larger)) larger = kNone;
  }
  if (is_same_size) sets_[static_cast<std::size_t>(set)].with[place] = larger;
  return larger;
}

SetIndex TaskSets::without(SetIndex set, KindIndex kind) {
  const auto place = static_cast<std::size_t>(kind);
  if (const SetIndex known = at(set).without[place]; known != kUnknown) return known;
  Key key(at(set).counts, at(set).size);
  --key.first[place];
  SetIndex smaller = find(key);
  if (smaller == kNone) {
    // An estimate need not know every layout that fits; the larger set's is one.
    smaller = known_[key] = add(key, at(set).rate);
    sets_[static_cast<std::size_t>(smaller)].is_estimated = false;
  }
  return sets_[static_cast<std::size_t>(set)].without[place] = smaller;
}

std::int32_t TaskSets::most_of(KindIndex kind, std::int64_t gpus) {
  if (most_of_.empty()) most_of_.assign(step_tokens_.size(), 0);
  std::int32_t& most = most_of_[static_cast<std::size_t>(kind)];
  if (most > 0) return most;
  std::int32_t fit = 0;
  for (SetIndex set = alone(kind, gpus); set != kNone; set = with(set, kind)) ++fit;
  return most = fit;
}

SetIndex TaskSets::find(const Key& key) {
  const auto [known, is_new] = known_.try_emplace(key, kNone);
  if (!is_new) return known->second;
  if (const std::optional<SetRate> rate = estimate_(key.first, sizes_[key.second])) known->second = add(key, *rate);
  return known->second;
}

SetIndex TaskSets::add(const Key& key, SetRate rate) {
  BRAID_CHECK(rate.step_seconds > 0, "a step of {} s", rate.step_seconds);
  const std::vector<std::int32_t>& counts = key.first;
  Set set;
  set.counts = counts;
  set.size = key.second;
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
    Key alone(std::vector<std::int32_t>(step_tokens_.size(), 0), at(set).size);
    alone.first[static_cast<std::size_t>(kind)] = 1;
    const SetIndex single = find(alone);
    if (single != kNone && step_seconds(set) > limits_.most_slowdown * step_seconds(single)) return true;
  }
  return false;
}

TaskSets exclusive_sets() {
  return {{0.0}, {.most_tasks = 1}, [](const std::vector<std::int32_t>&, std::int32_t) { return SetRate{1, 0}; }};
}

}  // namespace braid::sim
