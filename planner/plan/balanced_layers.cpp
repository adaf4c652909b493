#include "planner/plan/balanced_layers.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "planner/plan/task_load.h"

namespace braid::planner {

using costmodel::Pass;

namespace {

using Counts = std::vector<std::int64_t>;

double seconds_of(const StageCosts& costs, std::int64_t layers, std::size_t stage, std::size_t stages) {
  return static_cast<double>(layers) * costs.layer + (stage == 0 ? costs.first : 0) +
         (stage + 1 == stages ? costs.last : 0);
}

double slowest(const StageCosts& costs, const Counts& counts) {
  double most = -std::numeric_limits<double>::infinity();
  for (std::size_t stage = 0; stage < counts.size(); ++stage)
    most = std::max(most, seconds_of(costs, counts[stage], stage, counts.size()));
  return most;
}

/// Layers one by one to the stage that is then the fastest of those that `may_have` so many; nothing where none may.
template <class MayHave>
std::optional<Counts> balanced(std::int64_t layers, std::int64_t stages, const StageCosts& costs,
                               const MayHave& may_have) {
  BRAID_CHECK(1 <= stages && stages <= layers, "{} stages of {} layers", stages, layers);
  Counts counts(static_cast<std::size_t>(stages), 1);
  for (std::int64_t left = layers - stages; left > 0; --left) {
    std::optional<std::size_t> fastest;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t stage = 0; stage < counts.size(); ++stage) {
      const double seconds = seconds_of(costs, counts[stage] + 1, stage, counts.size());
      if (seconds >= least || !may_have(stage, counts[stage] + 1)) continue;
      fastest = stage;
      least = seconds;
    }
    if (!fastest) return std::nullopt;
    ++counts[*fastest];
  }
  return counts;
}

}  // namespace

Counts balanced_layers(std::int64_t layers, std::int64_t stages, const StageCosts& costs) {
  return *balanced(layers, stages, costs, [](std::size_t, std::int64_t) { return true; });
}

Counts balanced_passes(std::int64_t layers, std::int64_t stages, const PassCosts& costs) {
  Counts best = balanced_layers(layers, stages, costs.forward + costs.backward);
  const auto both = [&](const Counts& counts) {
    return slowest(costs.forward, counts) + slowest(costs.backward, counts);
  };
  double least = both(best);
  // Whatever the slowest Forward of the best is, it is one stage's with some number of layers.
  const auto count = static_cast<std::size_t>(stages);
  for (std::size_t slow = 0; slow < count; ++slow) {
    if (slow > 1 && slow + 1 < count) continue;  // the inner stages are alike
    for (std::int64_t here = 1; here <= layers - (stages - 1); ++here) {
      const double most = seconds_of(costs.forward, here, slow, count);
      const std::optional<Counts> counts = balanced(
          layers, stages, costs.backward,
          [&](std::size_t stage, std::int64_t of) { return seconds_of(costs.forward, of, stage, count) <= most; });
      if (!counts || both(*counts) >= least) continue;
      best = *counts;
      least = both(best);
    }
  }
  return best;
}

PassCosts pass_costs(const PolicyInput& input) {
  const std::int32_t tp = input.deployment.front().tp;
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(tp));
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto costs_of = [&](Pass pass) -> StageCosts {
    const auto seconds = [&](std::int64_t layers, bool first, bool last) {
      double sum = 0;
      for (TaskIndex task = 0; task < input.task_count(); ++task) {
        const costmodel::MicrobatchLoad load =
            task_load(input, task, Padding::max_length, costmodel::AdapterKernels::separate);
        sum += input.latency.alone({layers, first, last, tp}, ranks, load, pass).total.seconds;
      }
      return sum;
    };
    const double one = seconds(1, false, false);
    return {seconds(2, false, false) - one, seconds(1, true, false) - one, seconds(1, false, true) - one};
  };
  return {costs_of(Pass::forward), costs_of(Pass::backward)};
}

}  // namespace braid::planner
