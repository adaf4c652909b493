#include "planner/window/dispatched.h"

#include <algorithm>

#include "base/error.h"
#include "planner/dispatch/dispatch_model.h"
#include "planner/dispatch/length_ranges.h"

namespace braid::planner {
namespace {

std::size_t most_intervals(const LengthDispatch& dispatch) {
  std::size_t most = 0;
  for (const std::int32_t speed : dispatch.speed_of)
    most = std::max(most, dispatch.speeds[static_cast<std::size_t>(speed)].full.size());
  return most;
}

LengthRanges ranges_of(const LengthDispatch& dispatch, std::span<const SampleRow> rows,
                       const workload::Workload& workload) {
  const auto longest = static_cast<std::int64_t>(most_intervals(dispatch)) * dispatch.interval;
  std::vector<std::int64_t> lengths;
  for (const SampleRow& row : rows) {
    if (row.tokens > longest)
      throw error(
          "task '{}': sample {} has {} tokens, more than the {} that any replica of the plan holds; plan again, or "
          "lower its max_length",
          workload.tasks[static_cast<std::size_t>(row.task)].name, row.sample, row.tokens, longest);
    lengths.push_back(row.tokens);
  }
  if (dispatch.fixed_ranges.empty()) return best_ranges(lengths, dispatch.interval, dispatch.ranges);
  return {dispatch.fixed_ranges, 0};
}

Dispatched dispatched_over(const FixedPlan& fixed, const StepLoads& step) {
  switch (fixed.dispatch->kind) {
    case LengthDispatch::Kind::by_length: {
      std::vector<std::int64_t> gpus;
      for (const ReplicaShape& replica : fixed.deployment) gpus.push_back(std::int64_t{replica.tp} * replica.stages());
      return dispatch_by_length(step.speeds, gpus, step.loads);
    }
    case LengthDispatch::Kind::solved: {
      SolvedDispatch solved = solve_dispatch(step.speeds, step.loads, kDispatchLimits);
      // Ranks that lay the same step out must not differ.
      if (solved.truncated)
        throw Failure(
            fmt::format("the dispatch of a step was not solved within {} s and {} nodes; plan with dispatch=balanced",
                        kDispatchLimits.seconds, kDispatchLimits.nodes));
      return std::move(solved.dispatched);
    }
    case LengthDispatch::Kind::balanced:
      break;
  }
  return dispatch_balanced(step.speeds, step.loads);
}

Segment segment_of(const SampleRow& row, std::int64_t length) {
  Segment segment;
  segment.task = row.task;
  segment.global_batch = row.global_batch;
  segment.index = row.index;
  segment.sample = row.sample;
  segment.chosen = row.chosen;
  segment.end = row.tokens;
  segment.padding = static_cast<std::int32_t>(length) - row.tokens;
  segment.scored = std::min(row.scored, row.tokens - 1);
  return segment;
}

}  // namespace

StepLoads step_loads(const FixedPlan& fixed, std::span<const SampleRow> rows, const workload::Workload& workload) {
  const LengthDispatch& dispatch = *fixed.dispatch;
  const LengthRanges ranges = ranges_of(dispatch, rows, workload);
  StepLoads step;
  for (std::size_t replica = 0; replica < fixed.deployment.size(); ++replica)
    step.speeds.push_back(dispatch.speed(replica));
  step.ends = ranges.ends;
  for (const std::int64_t end : ranges.ends) step.loads.push_back({interval_of(end, dispatch.interval), 0});
  for (const SampleRow& row : rows) ++step.loads[ranges.of(row.tokens)].sequences;
  return step;
}

std::vector<DispatchedMicrobatch> dispatch_rows(const FixedPlan& fixed, std::span<const std::vector<SampleRow>> tasks,
                                                const workload::Workload& workload) {
  const LengthDispatch& dispatch = *fixed.dispatch;
  std::vector<SampleRow> rows;
  for (const std::vector<SampleRow>& task : tasks) rows.insert(rows.end(), task.begin(), task.end());
  const StepLoads step = step_loads(fixed, rows, workload);
  const LengthRanges ranges{step.ends, 0};
  const std::vector<RangeLoad>& loads = step.loads;
  std::vector<std::vector<SampleRow>> by_range(ranges.ends.size());
  for (const SampleRow& row : rows) by_range[ranges.of(row.tokens)].push_back(row);
  const Dispatched dispatched = dispatched_over(fixed, step);
  std::vector<DispatchedMicrobatch> microbatches;
  std::vector<std::size_t> taken(by_range.size(), 0);
  for (std::size_t replica = 0; replica < fixed.deployment.size(); ++replica) {
    const std::size_t first = microbatches.size();
    std::vector<std::pair<double, std::size_t>> order;  // by falling cost
    for (std::size_t range = 0; range < by_range.size(); ++range) {
      const std::int64_t count = dispatched.counts[replica][range];
      const ReplicaSpeed& speed = dispatch.speed(replica);
      for (std::int64_t done = 0; done < count;) {
        const ReplicaSpeed::Full& full = speed.full[loads[range].interval];
        const std::int64_t here = std::min(full.rows, count - done);
        DispatchedMicrobatch& microbatch = microbatches.emplace_back();
        microbatch.replica = static_cast<std::int32_t>(replica);
        for (std::int64_t i = 0; i < here; ++i)
          microbatch.segments.push_back(segment_of(by_range[range][taken[range]++], ranges.ends[range]));
        order.emplace_back(-static_cast<double>(here) * speed.seconds_a_row(loads[range].interval), order.size());
        done += here;
      }
    }
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<DispatchedMicrobatch> sorted;
    for (const auto& [cost, place] : order) sorted.push_back(std::move(microbatches[first + place]));
    std::move(sorted.begin(), sorted.end(), microbatches.begin() + static_cast<std::ptrdiff_t>(first));
  }
  return microbatches;
}

}  // namespace braid::planner
