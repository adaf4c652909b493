#include "planner/search/refine_bins.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "planner/plan/head_tail_groups.h"

namespace braid::planner {
namespace {

constexpr int kRounds = 3;
/// Of a mean pass: what a message takes where more microbatches are to be under way. Only how many are is told by it.
constexpr double kHiddenTransfer = 0.25;

using Change = std::function<void(FixedPlan&)>;

void scale_capacities(FixedPlan& fixed, double factor) {
  TokenBins& bins = *fixed.batching.bins;
  const auto scaled = [&](std::int64_t capacity) {
    const auto whole = static_cast<std::int64_t>(static_cast<double>(capacity) * factor) / bins.multiple;
    return std::max(bins.multiple, whole * bins.multiple);
  };
  bins.capacity = scaled(bins.capacity);
  if (!bins.unlike) return;
  for (std::int64_t& capacity : bins.unlike->capacities) capacity = std::min(bins.capacity, scaled(capacity));
}

std::vector<Change> changes_of(const FixedPlan& fixed, std::span<const double> means) {
  std::vector<Change> changes;
  for (const double factor : {0.75, 0.875, 1.125, 1.25})
    changes.emplace_back([factor](FixedPlan& plan) { scale_capacities(plan, factor); });
  const auto groups = static_cast<std::int64_t>(fixed.htasks.size());
  for (const std::int64_t count : {groups - 1, groups + 1}) {
    if (count >= 1 && count <= static_cast<std::int64_t>(means.size()))
      changes.emplace_back([count, means](FixedPlan& plan) { group_tasks(means, count, plan); });
  }
  changes.emplace_back([](FixedPlan& plan) { plan.batching.bins->merges = !plan.batching.bins->merges; });
  const bool pipeline = std::any_of(fixed.deployment.begin(), fixed.deployment.end(),
                                    [](const ReplicaShape& replica) { return replica.stages() > 1; });
  if (pipeline)
    changes.emplace_back(
        [](FixedPlan& plan) { plan.schedule.transfer_share = plan.schedule.transfer_share > 0 ? 0 : kHiddenTransfer; });
  return changes;
}

}  // namespace

std::int64_t refine_bins(Bench& bench, std::span<const double> means, Candidate& candidate) {
  std::int64_t judged = 0;
  if (!candidate.arrangement.fixed.batching.bins) return judged;
  bool faster_found = true;
  for (int round = 0; round < kRounds && faster_found; ++round) {
    faster_found = false;
    for (const Change& change : changes_of(candidate.arrangement.fixed, means)) {
      Candidate changed = candidate;
      change(changed.arrangement.fixed);
      const FixedPlan& fixed = changed.arrangement.fixed;
      try {
        if (!bench.fits(changed, bench.ask(fixed.deployment, fixed.batching.microbatches), Outlook::full)) continue;
      } catch (const Error&) {
        continue;  // A sample is longer than a bin.
      }
      ++judged;
      bench.predict_rates(changed);
      if (changed.prediction.step_seconds >= candidate.prediction.step_seconds) continue;
      candidate = std::move(changed);
      faster_found = true;
    }
  }
  return judged;
}

}  // namespace braid::planner
