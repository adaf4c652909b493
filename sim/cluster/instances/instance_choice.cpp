#include "sim/cluster/instances/instance_choice.h"

namespace braid::sim {

InstanceChoice::InstanceChoice(TaskSets& sets, Joining joining)
    : sets_(sets), joining_(joining), kinds_(static_cast<std::size_t>(sets.kinds())) {}

void InstanceChoice::add(std::int32_t instance, SetIndex set) {
  const auto place = static_cast<std::size_t>(set);
  if (instances_.size() <= place) instances_.resize(place + 1);
  const auto number = static_cast<std::size_t>(instance);
  if (arrivals_.size() <= number) arrivals_.resize(number + 1);
  if (instances_[place].empty()) {
    for (OfKind& kind : kinds_) {
      if (kind.rank.size() <= place) kind.rank.resize(place + 1, Rank::absent);
      if (kind.rank[place] != Rank::absent) continue;
      kind.rank[place] = Rank::pending;
      kind.pending.push_back(set);
    }
  }
  arrivals_[number] = arrived_++;
  instances_[place].emplace(arrivals_[number], instance);
}

void InstanceChoice::remove(std::int32_t instance, SetIndex set) {
  instances_[static_cast<std::size_t>(set)].erase({arrivals_[static_cast<std::size_t>(instance)], instance});
}

std::int32_t InstanceChoice::best(KindIndex kind, std::int64_t gpus, bool may_start) {
  // Nowhere is a task faster than alone: nothing else need be estimated.
  if (may_start && joining_ == Joining::fastest && sets_.alone(kind, gpus) != TaskSets::kNone) {
    const SetIndex empty = sets_.empty(gpus);
    return is_there(empty) ? latest(empty) : kNew;
  }
  OfKind& mine = kinds_[static_cast<std::size_t>(kind)];
  for (const SetIndex set : mine.pending) {
    Rank& rank = mine.rank[static_cast<std::size_t>(set)];
    if (!is_there(set)) {
      rank = Rank::absent;
      continue;
    }
    const SetIndex joined = sets_.with(set, kind);
    rank = joined == TaskSets::kNone ? Rank::refused : Rank::ranked;
    if (rank == Rank::ranked) mine.ranked.emplace(score(set, joined), set);
  }
  mine.pending.clear();
  while (!mine.ranked.empty() && !is_there(mine.ranked.begin()->second)) {
    mine.rank[static_cast<std::size_t>(mine.ranked.begin()->second)] = Rank::absent;
    mine.ranked.erase(mine.ranked.begin());
  }
  if (may_start) {
    const SetIndex alone = sets_.alone(kind, gpus);
    const bool fits = alone != TaskSets::kNone;
    if (fits && (mine.ranked.empty() || score(sets_.empty(gpus), alone) < mine.ranked.begin()->first)) return kNew;
  }
  return mine.ranked.empty() ? kNobody : latest(mine.ranked.begin()->second);
}

double InstanceChoice::score(SetIndex set, SetIndex joined) const {
  if (joining_ == Joining::fastest) return sets_.step_seconds(joined);
  return sets_.tokens_per_second(set) - sets_.tokens_per_second(joined);
}

}  // namespace braid::sim
