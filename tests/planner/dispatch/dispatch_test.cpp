#include "planner/dispatch/dispatch.h"

#include <algorithm>
#include <functional>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "planner/dispatch/dispatch_model.h"
#include "planner/dispatch/length_ranges.h"

namespace braid::planner {
namespace {

std::int64_t padded_to(std::span<const std::int64_t> ends, std::span<const std::int64_t> lengths) {
  std::int64_t padding = 0;
  for (const std::int64_t length : lengths) padding += *std::lower_bound(ends.begin(), ends.end(), length) - length;
  return padding;
}

/// The least padding with at most so many of these ends, the last among them.
std::int64_t least_padding(const std::vector<std::int64_t>& ends, std::size_t most,
                           std::span<const std::int64_t> lengths) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t chosen = 0; chosen < (std::size_t{1} << (ends.size() - 1)); ++chosen) {
    std::vector<std::int64_t> some;
    for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
      if (chosen >> i & 1) some.push_back(ends[i]);
    }
    some.push_back(ends.back());
    if (some.size() <= most) least = std::min(least, padded_to(some, lengths));
  }
  return least;
}

RC_GTEST_PROP(LengthRanges, PadAsLittleAsAnySubsetOfTheIntervals, ()) {
  const auto interval = *rc::gen::inRange<std::int64_t>(1, 300);
  const auto lengths = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(1, 8 * interval + 1)));
  const auto most = *rc::gen::inRange<std::size_t>(1, 6);
  const LengthRanges ranges = best_ranges(lengths, interval, static_cast<std::int64_t>(most));
  RC_ASSERT(ranges.ends.size() <= most);
  RC_ASSERT(std::is_sorted(ranges.ends.begin(), ranges.ends.end()));
  for (const std::int64_t end : ranges.ends) RC_ASSERT(end % interval == 0);
  RC_ASSERT(ranges.padding == padded_to(ranges.ends, lengths));
  std::vector<std::int64_t> ends;
  const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  for (std::int64_t end = interval; ends.empty() || ends.back() < longest; end += interval) ends.push_back(end);
  RC_ASSERT(ranges.padding == least_padding(ends, most, lengths));
  for (const std::int64_t length : lengths) {
    const std::size_t range = ranges.of(length);
    RC_ASSERT(length <= ranges.ends[range]);
    if (range > 0) RC_ASSERT(length > ranges.ends[range - 1]);
  }
}

struct DrawnStep {
  std::vector<ReplicaSpeed> replicas;
  std::vector<RangeLoad> ranges;
};

/// The first replica holds all ranges.
DrawnStep any_step(int most_replicas, int most_ranges, int most_sequences) {
  DrawnStep drawn;
  const auto ranges = *rc::gen::inRange(1, most_ranges + 1);
  for (int r = 0; r < ranges; ++r)
    drawn.ranges.push_back({static_cast<std::size_t>(2 * r), *rc::gen::inRange(0, most_sequences + 1)});
  const auto replicas = *rc::gen::inRange(1, most_replicas + 1);
  for (int r = 0; r < replicas; ++r) {
    ReplicaSpeed replica;
    replica.stages = *rc::gen::inRange(1, 4);
    const int intervals = r == 0 ? 2 * ranges : *rc::gen::inRange(0, 2 * ranges + 1);
    const double speed = 0.01 * *rc::gen::inRange(20, 300);
    for (int i = 0; i < intervals; ++i)
      replica.full.push_back(
          {*rc::gen::inRange(1, 5), speed * (i + 1) * (1 + 0.1 * i) * 0.01 * *rc::gen::inRange(80, 120)});
    drawn.replicas.push_back(std::move(replica));
  }
  return drawn;
}

double slowest(const DrawnStep& drawn, const std::vector<std::vector<std::int64_t>>& counts) {
  double seconds = 0;
  for (std::size_t r = 0; r < drawn.replicas.size(); ++r)
    seconds = std::max(seconds, replica_seconds(drawn.replicas[r], drawn.ranges, counts[r]));
  return seconds;
}

void expect_valid(const DrawnStep& drawn, const Dispatched& dispatched) {
  for (std::size_t range = 0; range < drawn.ranges.size(); ++range) {
    std::int64_t all = 0;
    for (std::size_t r = 0; r < drawn.replicas.size(); ++r) {
      const std::int64_t count = dispatched.counts[r][range];
      RC_ASSERT(count >= 0);
      RC_ASSERT(count == 0 || drawn.ranges[range].interval < drawn.replicas[r].full.size());
      all += count;
    }
    RC_ASSERT(all == drawn.ranges[range].sequences);
  }
  RC_ASSERT(std::abs(dispatched.seconds - slowest(drawn, dispatched.counts)) <= 1e-12 * dispatched.seconds);
  RC_ASSERT(dispatched.bound <= dispatched.seconds);
}

/// All ways to give the ranges from `range` on to replicas.
double fastest(const DrawnStep& drawn, std::vector<std::vector<std::int64_t>>& counts, std::size_t range,
               std::size_t replica, std::int64_t left) {
  if (range == drawn.ranges.size()) return slowest(drawn, counts);
  if (replica == drawn.replicas.size()) {
    if (left > 0) return std::numeric_limits<double>::infinity();
    return fastest(drawn, counts, range + 1, 0,
                   range + 1 < drawn.ranges.size() ? drawn.ranges[range + 1].sequences : 0);
  }
  const bool holds = drawn.ranges[range].interval < drawn.replicas[replica].full.size();
  double best = std::numeric_limits<double>::infinity();
  for (std::int64_t count = 0; count <= (holds ? left : 0); ++count) {
    counts[replica][range] = count;
    best = std::min(best, fastest(drawn, counts, range, replica + 1, left - count));
  }
  counts[replica][range] = 0;
  return best;
}

RC_GTEST_PROP(Dispatch, IsBetweenItsBoundAndNotFarFromTheBest, ()) {
  const DrawnStep drawn = any_step(3, 3, 6);
  const Dispatched dispatched = dispatch_balanced(drawn.replicas, drawn.ranges);
  expect_valid(drawn, dispatched);
  std::vector<std::vector<std::int64_t>> counts(drawn.replicas.size(),
                                                std::vector<std::int64_t>(drawn.ranges.size(), 0));
  const double best = fastest(drawn, counts, 0, 0, drawn.ranges[0].sequences);
  RC_ASSERT(dispatched.bound <= best * (1 + 1e-12));
  RC_ASSERT(dispatched.seconds >= best * (1 - 1e-12));
  RC_ASSERT(dispatched.seconds <= 1.5 * best);
}

TEST(Dispatch, SolvedIsTheBestOfAll) {
  ASSERT_TRUE(rc::check([] {
    const DrawnStep drawn = any_step(3, 3, 6);
    std::vector<std::vector<std::int64_t>> counts(drawn.replicas.size(),
                                                  std::vector<std::int64_t>(drawn.ranges.size(), 0));
    const double best = fastest(drawn, counts, 0, 0, drawn.ranges[0].sequences);
    const Dispatched greedy = dispatch_balanced(drawn.replicas, drawn.ranges);
    const milp::Model model = dispatch_model(drawn.replicas, drawn.ranges, greedy.seconds);
    RC_ASSERT(model.holds(values_of(greedy, drawn.replicas, drawn.ranges, model)));
    const SolvedDispatch solved = solve_dispatch(drawn.replicas, drawn.ranges, {});
    RC_ASSERT(!solved.truncated);
    expect_valid(drawn, solved.dispatched);
    RC_ASSERT(std::abs(solved.dispatched.seconds - best) <= 1e-6 * best);
  }));
}

RC_GTEST_PROP(Dispatch, OfManySequencesIsNearItsBound, ()) {
  DrawnStep drawn = any_step(12, 16, 200);
  for (ReplicaSpeed& replica : drawn.replicas) replica.stages = 1;
  const Dispatched dispatched = dispatch_balanced(drawn.replicas, drawn.ranges);
  expect_valid(drawn, dispatched);
  const Dispatched again = dispatch_balanced(drawn.replicas, drawn.ranges);
  RC_ASSERT(dispatched.counts == again.counts);
  // Sequences are whole: the slowest replica may have one more than its share.
  double longest = 0;
  for (std::size_t r = 0; r < drawn.replicas.size(); ++r) {
    for (std::size_t range = 0; range < drawn.ranges.size(); ++range) {
      if (dispatched.counts[r][range] > 0)
        longest = std::max(longest, drawn.replicas[r].seconds_a_row(drawn.ranges[range].interval));
    }
  }
  RC_ASSERT(dispatched.seconds <= 1.1 * dispatched.bound + longest);
}

RC_GTEST_PROP(Dispatch, ByLengthTakesTheCheapestReplicas, ()) {
  const DrawnStep drawn = any_step(5, 5, 30);
  std::vector<std::int64_t> gpus;
  for (std::size_t r = 0; r < drawn.replicas.size(); ++r) gpus.push_back(*rc::gen::element(1, 2, 4));
  const Dispatched dispatched = dispatch_by_length(drawn.replicas, gpus, drawn.ranges);
  expect_valid(drawn, dispatched);
}

TEST(Dispatch, NeedsAReplicaThatHoldsEachRange) {
  const std::vector<ReplicaSpeed> replicas = {{{{1, 1.0}}, 1}};
  const std::vector<RangeLoad> ranges = {{1, 3}};
  EXPECT_THROW(dispatch_balanced(replicas, ranges), InternalError);
}

}  // namespace
}  // namespace braid::planner
