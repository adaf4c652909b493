#include "planner/muxtune/bucket_order.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/template_study.h"

namespace braid::planner {
namespace {

using namespace testing;

PipelineInstance any_instance(int most_buckets) {
  StudyShape shape;
  shape.stages = *rc::gen::inRange(1, 6);
  shape.buckets = *rc::gen::inRange(1, most_buckets + 1);
  shape.most_jobs = *rc::gen::inRange(1, 5);
  shape.unevenness = *rc::gen::element(0.0, 0.5);
  shape.chunks = *rc::gen::element(1, 3);
  shape.memory = *rc::gen::element(0.0, 1.0, 3.0);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  return random_instance(shape, random);
}

PipelineSimulator simulator_of(const PipelineInstance& instance) {
  return {instance.jobs, instance.stages, instance.memory, instance.messages};
}

RC_GTEST_PROP(BucketOrder, NeverSlowerThanDescendingAndTrueToItsOrder, ()) {
  const PipelineInstance instance = any_instance(6);
  PipelineSimulator simulator = simulator_of(instance);
  const TemplateRules rules{.descending = *rc::gen::arbitrary<bool>(),
                            .consecutive = *rc::gen::arbitrary<bool>(),
                            .eager = *rc::gen::arbitrary<bool>()};
  const auto limit = *rc::gen::element<std::int64_t>(1, 7, 1000);
  const BucketOrder found = search_bucket_order(simulator, rules, limit);
  TemplateRules descending = rules;
  descending.descending = true;
  RC_ASSERT(found.makespan <= schedule_of(instance, descending).makespan);
  RC_ASSERT(found.makespan == simulator.makespan(simulator.job_order(found.buckets, rules), rules));
  RC_ASSERT(found.evaluations <= limit);
  RC_ASSERT(!found.truncated || found.evaluations == limit);
}

RC_GTEST_PROP(BucketOrder, OfThreeBucketsItFindsTheBest, ()) {
  const PipelineInstance instance = any_instance(3);
  PipelineSimulator simulator = simulator_of(instance);
  const BucketOrder found = search_bucket_order(simulator, {}, 1000);
  std::vector<std::int32_t> buckets(static_cast<std::size_t>(simulator.bucket_count()));
  std::iota(buckets.begin(), buckets.end(), 0);
  Nanoseconds best = found.makespan;
  do {
    best = std::min(best, simulator.makespan(simulator.job_order(buckets, {}), {}));
  } while (std::next_permutation(buckets.begin(), buckets.end()));
  RC_ASSERT(found.makespan == best);
}

RC_GTEST_PROP(BucketOrder, WhereItStopsNoMoveAndNoExchangeHelps, ()) {
  const PipelineInstance instance = any_instance(6);
  PipelineSimulator simulator = simulator_of(instance);
  const BucketOrder found = search_bucket_order(simulator, {}, 100'000);
  RC_ASSERT(!found.truncated);
  for (std::size_t a = 0; a < found.buckets.size(); ++a) {
    for (std::size_t b = 0; b < found.buckets.size(); ++b) {
      std::vector<std::int32_t> exchanged = found.buckets, moved = found.buckets;
      std::swap(exchanged[a], exchanged[b]);
      moved.erase(moved.begin() + static_cast<std::ptrdiff_t>(a));
      moved.insert(moved.begin() + static_cast<std::ptrdiff_t>(b), found.buckets[a]);
      RC_ASSERT(simulator.makespan(simulator.job_order(exchanged, {}), {}) >= found.makespan);
      RC_ASSERT(simulator.makespan(simulator.job_order(moved, {}), {}) >= found.makespan);
    }
  }
}

TEST(BucketOrder, SavesOnAverageWhatTheWarmUpCosts) {
  StudyShape shape;
  shape.buckets = 5;
  RandomStream random(31);
  Ratios saved;
  for (int i = 0; i < 50; ++i) {
    const PipelineInstance instance = random_instance(shape, random);
    PipelineSimulator simulator = simulator_of(instance);
    saved.add(static_cast<double>(schedule_of(instance, {}).makespan) /
              static_cast<double>(search_bucket_order(simulator, {}, 1000).makespan));
  }
  EXPECT_GT(saved.mean, 1.02);
}

}  // namespace
}  // namespace braid::planner
