#include "planner/plan/balanced_layers.h"

#include <numeric>

#include "base/error.h"
#include "planner/plan/task_load.h"

namespace braid::planner {

using costmodel::Pass;

std::vector<std::int64_t> balanced_layers(std::int64_t layers, std::int64_t stages, const StageCosts& costs) {
  BRAID_CHECK(1 <= stages && stages <= layers, "{} stages of {} layers", stages, layers);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(stages), 1);
  const auto with_one_more = [&](std::size_t stage) {
    return static_cast<double>(counts[stage] + 1) * costs.layer + (stage == 0 ? costs.first : 0) +
           (stage + 1 == counts.size() ? costs.last : 0);
  };
  for (std::int64_t left = layers - stages; left > 0; --left) {
    std::size_t fastest = 0;
    for (std::size_t stage = 1; stage < counts.size(); ++stage) {
      if (with_one_more(stage) < with_one_more(fastest)) fastest = stage;
    }
    ++counts[fastest];
  }
  return counts;
}

StageCosts stage_costs(const PolicyInput& input) {
  const std::int32_t tp = input.deployment.front().tp;
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(tp));
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto seconds = [&](std::int64_t layers, bool first, bool last) {
    double sum = 0;
    for (TaskIndex task = 0; task < input.task_count(); ++task) {
      const costmodel::MicrobatchLoad load =
          task_load(input, task, Padding::max_length, costmodel::AdapterKernels::separate);
      for (const Pass pass : {Pass::forward, Pass::backward})
        sum += input.latency.alone({layers, first, last, tp}, ranks, load, pass).total.seconds;
    }
    return sum;
  };
  const double one = seconds(1, false, false);
  return {seconds(2, false, false) - one, seconds(1, true, false) - one, seconds(1, false, true) - one};
}

}  // namespace braid::planner
