#include "planner/program/sync_order.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace braid::planner {
namespace {

/// Where a batch begins and ends in one stage's compute order.
struct BatchExtent {
  std::size_t first_forward = 0;
  std::size_t last_backward = 0;
};

std::map<BatchKey, BatchExtent> extents_of(const StageOrder& order, const std::vector<Microbatch>& microbatches,
                                           std::span<const std::vector<BatchKey>> batches) {
  const auto before = [](const Microbatch& microbatch, MicrobatchId id) { return microbatch.id < id; };
  std::map<BatchKey, BatchExtent> extents;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto microbatch =
        std::lower_bound(microbatches.begin(), microbatches.end(), order[i].microbatch, before) - microbatches.begin();
    for (const BatchKey& key : batches[static_cast<std::size_t>(microbatch)]) {
      BatchExtent& extent = extents.emplace(key, BatchExtent{i, i}).first->second;
      if (order[i].kind == Kind::backward) extent.last_backward = i;
    }
  }
  return extents;
}

/// The plain order, stably sorted by last backward on the first stages.
std::vector<BatchKey> as_they_end(const Schedule& schedule, std::span<const std::vector<BatchKey>> batches) {
  std::map<BatchKey, std::size_t> ends;
  for (const std::vector<StageOrder>& replica : schedule.orders) {
    for (const auto& [key, extent] : extents_of(replica.front(), schedule.microbatches, batches))
      ends[key] = std::max(ends[key], extent.last_backward);
  }
  std::vector<BatchKey> order = plain_sync_order(schedule.microbatches);
  std::stable_sort(order.begin(), order.end(), [&](const BatchKey& a, const BatchKey& b) { return ends[a] < ends[b]; });
  return order;
}

}  // namespace

std::vector<BatchKey> plain_sync_order(std::span<const Microbatch> microbatches) {
  std::map<BatchKey, MicrobatchId> last;
  for (const Microbatch& microbatch : microbatches) {
    for (const BatchKey& key : batches_of(microbatch)) last[key] = std::max(last[key], microbatch.id);
  }
  std::vector<std::pair<MicrobatchId, BatchKey>> keyed;
  for (const auto& [key, id] : last) keyed.emplace_back(id, key);
  std::sort(keyed.begin(), keyed.end());
  std::vector<BatchKey> order;
  for (const auto& [id, key] : keyed) order.push_back(key);
  return order;
}

std::vector<BatchKey> sync_order(const Schedule& schedule) {
  std::vector<std::vector<BatchKey>> batches;
  for (const Microbatch& microbatch : schedule.microbatches) batches.push_back(batches_of(microbatch));
  const std::vector<BatchKey> ending = as_they_end(schedule, batches);
  // One replica ends a task's batch before it begins the next, so that this order serves.
  if (schedule.replicas.size() == 1) return ending;
  std::map<BatchKey, std::size_t> place;
  for (std::size_t i = 0; i < ending.size(); ++i) place[ending[i]] = i;
  const auto has_one_before = [&](const BatchKey& key) { return place.contains({key.task, key.global_batch - 1}); };
  if (std::none_of(ending.begin(), ending.end(), has_one_before)) return ending;
  std::vector<std::set<std::size_t>> after(ending.size());
  const auto require = [&](const BatchKey& early, const BatchKey& late) {
    if (early != late) after[place[early]].insert(place[late]);
  };
  for (const BatchKey& key : ending) {
    if (has_one_before(key)) require({key.task, key.global_batch - 1}, key);
  }
  for (const std::vector<StageOrder>& replica : schedule.orders) {
    for (const StageOrder& order : replica) {
      const std::map<BatchKey, BatchExtent> extents = extents_of(order, schedule.microbatches, batches);
      for (const auto& [key, extent] : extents) {
        // The task's batch before this one, wherever its samples are.
        if (!has_one_before(key)) continue;
        const BatchKey before{key.task, key.global_batch - 1};
        for (const auto& [other, span] : extents) {
          if (span.last_backward > extent.first_forward) require(before, other);
        }
      }
    }
  }
  // Kahn's algorithm; of those that are ready, the first to end.
  std::vector<int> awaited(ending.size(), 0);
  for (const std::set<std::size_t>& later : after) {
    for (const std::size_t i : later) ++awaited[i];
  }
  std::set<std::size_t> ready, left;
  for (std::size_t i = 0; i < ending.size(); ++i) (awaited[i] == 0 ? ready : left).insert(i);
  std::vector<BatchKey> order;
  while (!ready.empty()) {
    const std::size_t next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(ending[next]);
    for (const std::size_t i : after[next]) {
      if (--awaited[i] == 0) left.erase(i), ready.insert(i);
    }
  }
  for (const std::size_t i : left) order.push_back(ending[i]);
  return order;
}

}  // namespace braid::planner
