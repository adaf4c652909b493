#include "planner/search/step_models.h"

#include <array>

#include <fmt/format.h>

#include "planner/bins/bin_models.h"
#include "planner/dispatch/dispatch_model.h"
#include "planner/window/bin_batcher.h"
#include "planner/window/dispatched.h"

namespace braid::planner {
namespace {

std::vector<PackedStep> first_packings(const FixedPlan& fixed, const WindowInput& input) {
  std::vector<PackedStep> packings;
  const auto batcher = make_bin_batcher(fixed, input, [&](const PackedStep& step) { packings.push_back(step); });
  for (std::vector<WindowStep>& round : rounds_of(window_steps(fixed, input, 0))) batcher->push(0, std::move(round));
  batcher->end();
  while (batcher->pull()) {
  }
  return packings;
}

void write_dispatch_models(const FixedPlan& fixed, const WindowInput& input, milp::Exchange& models) {
  for (const std::vector<WindowStep>& round : rounds_of(window_steps(fixed, input, 0))) {
    for (std::size_t first = 0; first < round.size();) {
      std::vector<SampleRow> rows;
      const std::int32_t htask = round[first].htask;
      for (; first < round.size() && round[first].htask == htask; ++first) {
        const WindowStep& step = round[first];
        const std::vector<SampleRow> more =
            rows_of(step.task, step.global_batch, input.samples.global_batch(step.task, step.global_batch), 0);
        rows.insert(rows.end(), more.begin(), more.end());
      }
      const StepLoads loads = step_loads(fixed, rows, input.workload);
      const double seconds = dispatch_balanced(loads.speeds, loads.loads).seconds;
      models.write(dispatch_model(loads.speeds, loads.loads, seconds));
    }
  }
}

}  // namespace

void write_step_models(const FixedPlan& fixed, const WindowInput& input, milp::Exchange& models) {
  if (fixed.dispatch) write_dispatch_models(fixed, input, models);
  if (!fixed.batching.bins) return;
  for (const PackedStep& step : first_packings(fixed, input)) {
    const auto bins = static_cast<std::int64_t>(step.packing.bins.size());
    if (bins == 0) continue;
    models.write(fewest_bins_model(step.items, step.rules, bins));
    models.write(emptiest_bin_model(step.items, step.rules, bins));
  }
}

std::string describe_packings(const FixedPlan& fixed, const WindowInput& input) {
  if (!fixed.batching.bins) return "";
  std::int64_t proven = 0, all = 0;
  std::array<std::int64_t, 3> from{};
  for (const PackedStep& step : first_packings(fixed, input)) {
    if (step.items.empty()) continue;
    ++all;
    if (step.packing.fewest) ++proven;
    ++from[static_cast<std::size_t>(step.packing.from)];
  }
  std::string ways;
  for (const BinSearch search : {BinSearch::greedy, BinSearch::searched, BinSearch::solved}) {
    if (search > fixed.batching.bins->search) break;
    ways += fmt::format("{}{} {}", ways.empty() ? "" : ", ", from[static_cast<std::size_t>(search)], name(search));
  }
  return fmt::format(
      "of the first window's {} packings {} are proven to have the fewest microbatches; they are from: {}", all, proven,
      ways);
}

}  // namespace braid::planner
