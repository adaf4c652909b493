#include "planner/muxtune/task_grouping.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "base/random.h"

namespace braid::planner {
namespace {

double latency(const std::vector<std::int32_t>& bucket, const std::vector<double>& seconds) {
  double sum = 0;
  for (const std::int32_t htask : bucket) sum += seconds[static_cast<std::size_t>(htask)];
  return sum;
}

double total(const std::vector<double>& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

/// What sums of these latencies may be off by, squared deviations of them included.
double rounding(const std::vector<double>& seconds) {
  return 1e-13 * total(seconds) * total(seconds);
}

double variance_sum(const std::vector<double>& latencies) {
  const double mean = total(latencies) / static_cast<double>(latencies.size());
  double sum = 0;
  for (const double here : latencies) sum += (here - mean) * (here - mean);
  return sum;
}

/// The least for each number of buckets, by putting each hTask into every bucket in use and into a new one.
void search(const std::vector<double>& seconds, std::size_t next, std::vector<double>& latencies,
            std::vector<double>& least) {
  if (next == seconds.size()) {
    double& entry = least[latencies.size()];
    entry = std::min(entry, variance_sum(latencies));
    return;
  }
  for (std::size_t b = 0; b < latencies.size(); ++b) {
    const double before = latencies[b];
    latencies[b] += seconds[next];
    search(seconds, next + 1, latencies, least);
    latencies[b] = before;
  }
  latencies.push_back(seconds[next]);
  search(seconds, next + 1, latencies, least);
  latencies.pop_back();
}

std::vector<double> by_exhaustive_search(const std::vector<double>& seconds) {
  std::vector<double> least(seconds.size() + 1, std::numeric_limits<double>::infinity()), latencies;
  search(seconds, 0, latencies, least);
  return least;
}

enum class Latencies { uniform, skewed, few_whole_numbers };

std::vector<double> drawn(Latencies kind, std::size_t count, RandomStream& random) {
  std::vector<double> seconds;
  for (std::size_t h = 0; h < count; ++h) {
    switch (kind) {
      case Latencies::uniform:
        seconds.push_back(1 + 9 * random.next_uniform());
        break;
      case Latencies::skewed:
        seconds.push_back(std::exp(1.5 * random.next_normal()));
        break;
      case Latencies::few_whole_numbers:
        seconds.push_back(static_cast<double>(random.next_below(5)));
        break;
    }
  }
  return seconds;
}

std::vector<double> any_latencies(std::size_t most) {
  const auto count = *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::size_t>(1, most + 1));
  RandomStream random(*rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::uint64_t>(0, 1u << 30)));
  return drawn(*rc::gen::element(Latencies::uniform, Latencies::skewed, Latencies::few_whole_numbers), count, random);
}

/// All that a grouping promises whatever it is worth.
void check_form(const Grouping& grouping, const std::vector<double>& seconds, std::size_t buckets) {
  RC_ASSERT(grouping.buckets.size() == buckets);
  std::vector<double> latencies;
  std::vector<std::int32_t> seen;
  for (const std::vector<std::int32_t>& bucket : grouping.buckets) {
    RC_ASSERT(!bucket.empty());
    RC_ASSERT(std::is_sorted(bucket.begin(), bucket.end()));
    seen.insert(seen.end(), bucket.begin(), bucket.end());
    latencies.push_back(latency(bucket, seconds));
  }
  for (std::size_t b = 1; b < buckets; ++b) {
    RC_ASSERT(std::pair(-latencies[b - 1], grouping.buckets[b - 1].front()) <
              std::pair(-latencies[b], grouping.buckets[b].front()));
  }
  std::sort(seen.begin(), seen.end());
  std::vector<std::int32_t> every(seconds.size());
  std::iota(every.begin(), every.end(), 0);
  RC_ASSERT(seen == every);
  RC_ASSERT(std::abs(grouping.variance_sum - variance_sum(latencies)) <= rounding(seconds));
}

RC_GTEST_PROP(TaskGrouping, EqualsExhaustiveSearchForEveryNumberOfBuckets, ()) {
  const std::vector<double> seconds = any_latencies(8);
  const std::vector<double> least = by_exhaustive_search(seconds);
  for (std::size_t buckets = 1; buckets <= seconds.size(); ++buckets) {
    const Grouping grouping = group_htasks(seconds, static_cast<std::int32_t>(buckets));
    RC_ASSERT(grouping.exact);
    RC_ASSERT(std::abs(grouping.variance_sum - least[buckets]) <= rounding(seconds));
  }
}

RC_GTEST_PROP(TaskGrouping, EveryHTaskIsInOneBucketAndNoBucketIsEmpty, ()) {
  const std::vector<double> seconds = any_latencies(40);
  for (std::size_t buckets = 1; buckets <= seconds.size(); ++buckets) {
    const auto count = static_cast<std::int32_t>(buckets);
    check_form(group_htasks(seconds, count), seconds, buckets);
    check_form(group_htasks_by_exchange(seconds, count), seconds, buckets);
  }
}

RC_GTEST_PROP(TaskGrouping, OneBucketHoldsAllAndAsManyBucketsAsHTasksHoldOneEach, ()) {
  const std::vector<double> seconds = any_latencies(40);
  const Grouping one = group_htasks(seconds, 1);
  RC_ASSERT(one.buckets.size() == 1u);
  RC_ASSERT(one.variance_sum <= rounding(seconds));
  const Grouping singles = group_htasks(seconds, static_cast<std::int32_t>(seconds.size()));
  for (const std::vector<std::int32_t>& bucket : singles.buckets) RC_ASSERT(bucket.size() == 1u);
  RC_ASSERT(std::abs(singles.variance_sum - variance_sum(seconds)) <= rounding(seconds));
}

RC_GTEST_PROP(TaskGrouping, NoMoveAndNoSwapHelpsAfterExchanges, ()) {
  const std::vector<double> seconds = any_latencies(30);
  const auto buckets = *rc::gen::resize(
      rc::kNominalSize, rc::gen::inRange<std::int32_t>(1, static_cast<std::int32_t>(seconds.size()) + 1));
  const Grouping grouping = group_htasks_by_exchange(seconds, buckets);
  // Giving d of the gap g to a smaller bucket lessens Σ squares by 2 d (g − d).
  const auto helps = [&](double moved, double gap) { return moved * (gap - moved) > rounding(seconds); };
  for (const std::vector<std::int32_t>& larger : grouping.buckets) {
    for (const std::vector<std::int32_t>& smaller : grouping.buckets) {
      const double gap = latency(larger, seconds) - latency(smaller, seconds);
      if (gap <= 0) continue;
      for (const std::int32_t given : larger) {
        const double mine = seconds[static_cast<std::size_t>(given)];
        RC_ASSERT(larger.size() == 1 || !helps(mine, gap));
        for (const std::int32_t taken : smaller) {
          RC_ASSERT(!helps(mine - seconds[static_cast<std::size_t>(taken)], gap));
        }
      }
    }
  }
}

RC_GTEST_PROP(TaskGrouping, NumbersOfBucketsMayBeAskedForInAnyOrder, ()) {
  const std::vector<double> seconds = any_latencies(12);
  std::vector<std::int32_t> counts(seconds.size());
  std::iota(counts.begin(), counts.end(), 1);
  RandomStream random(seconds.size());
  shuffle(std::span(counts), random);
  TaskGroupings groupings(seconds);
  for (const std::int32_t buckets : counts)
    RC_ASSERT(groupings.into(buckets).buckets == group_htasks(seconds, buckets).buckets);
}

RC_GTEST_PROP(TaskGrouping, DoesNotDependOnTheUnit, ()) {
  const std::vector<double> seconds = any_latencies(30);
  std::vector<double> scaled = seconds;
  for (double& here : scaled) here /= 1 << 20;
  for (std::int32_t buckets = 1; buckets <= static_cast<std::int32_t>(seconds.size()); ++buckets) {
    RC_ASSERT(group_htasks(seconds, buckets).buckets == group_htasks(scaled, buckets).buckets);
  }
}

/// Deviation of the buckets' latencies over their mean.
double unevenness(const Grouping& grouping, const std::vector<double>& seconds) {
  const auto buckets = static_cast<double>(grouping.buckets.size());
  return std::sqrt(grouping.variance_sum / buckets) / (total(seconds) / buckets);
}

TEST(TaskGrouping, ExchangesComeWithinAPercentOfTheMeanLatencyOfTheBest) {
  constexpr int kInstances = 50;
  for (const Latencies kind : {Latencies::uniform, Latencies::skewed}) {
    for (const std::int32_t buckets : {2, 3, 4, 6, 8}) {
      double mean_best = 0, mean_gap = 0, worst_gap = 0;
      int best_found = 0;
      for (std::uint64_t i = 0; i < kInstances; ++i) {
        RandomStream random(mix_key({{0x6409u, static_cast<std::uint64_t>(kind), i}}));
        const std::vector<double> seconds = drawn(kind, kExactlyGrouped, random);
        const Grouping exact = group_htasks(seconds, buckets), heuristic = group_htasks_by_exchange(seconds, buckets);
        EXPECT_GE(heuristic.variance_sum, exact.variance_sum - rounding(seconds));
        const double gap = std::max(0.0, unevenness(heuristic, seconds) - unevenness(exact, seconds));
        mean_best += unevenness(exact, seconds) / kInstances;
        mean_gap += gap / kInstances;
        worst_gap = std::max(worst_gap, gap);
        best_found += heuristic.variance_sum <= exact.variance_sum + rounding(seconds);
      }
      EXPECT_LT(mean_gap, 0.01);
      std::cout << fmt::format(
          "{} latencies, {} hTasks, {} buckets: deviation / mean {:.4f} at best, exchanges {:.4f} more in the mean and "
          "{:.4f} at worst; best in {} of {}\n",
          kind == Latencies::uniform ? "uniform" : "skewed", kExactlyGrouped, buckets, mean_best, mean_gap, worst_gap,
          best_found, kInstances);
    }
  }
}

TEST(TaskGrouping, ExchangesNearlyLevelLargeSetsThatCanBeLevelled) {
  // Buckets of one total, each cut into pieces at random; their grouping is forgotten.
  for (const std::size_t buckets : {2, 4, 8, 16, 32}) {
    RandomStream random(mix_key({{0x1e7e1u, buckets}}));
    std::vector<double> seconds;
    for (std::size_t b = 0; b < buckets; ++b) {
      double left = 1;
      for (std::size_t pieces = 128 / buckets; pieces > 1; --pieces) {
        seconds.push_back(left / static_cast<double>(pieces) * (0.5 + random.next_uniform()));
        left -= seconds.back();
      }
      seconds.push_back(left);
    }
    shuffle(std::span(seconds), random);
    const double uneven = unevenness(group_htasks(seconds, static_cast<std::int32_t>(buckets)), seconds);
    std::cout << fmt::format("{} hTasks into {} buckets that can be level: deviation / mean {:.1e}\n", seconds.size(),
                             buckets, uneven);
    EXPECT_LT(uneven, 0.01);
  }
}

TEST(TaskGrouping, BucketsOfOneLatencyAreSortedByTheirLowestHTask) {
  const std::vector<double> seconds(20, 1.0);
  const Grouping grouping = group_htasks(seconds, 10);
  EXPECT_EQ(grouping.variance_sum, 0);
  EXPECT_TRUE(grouping.exact);
  for (std::size_t b = 1; b < 10; ++b) EXPECT_LT(grouping.buckets[b - 1].front(), grouping.buckets[b].front());
}

TEST(TaskGrouping, RefusesBucketsThatCannotBeFilled) {
  const std::vector<double> seconds = {1, 2, 3};
  for (const std::int32_t buckets : {-1, 0, 4}) {
    EXPECT_THROW(group_htasks(seconds, buckets), Error);
    EXPECT_THROW(group_htasks_by_exchange(seconds, buckets), Error);
  }
  EXPECT_THROW(group_htasks({}, 1), Error);
  EXPECT_THROW(group_htasks(std::vector<double>{1, -1}, 1), InternalError);
}

}  // namespace
}  // namespace braid::planner
