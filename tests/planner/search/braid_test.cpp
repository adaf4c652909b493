#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "planner/policies/registry.h"
#include "planner/requests.h"
#include "planner/search/make_plan.h"

namespace braid::planner {
namespace {

using namespace testing;

/// Infinite where nothing fits, or the policy has not what is asked for.
double seconds_of_plan(const PlanningInput& input, const std::string& policy) {
  try {
    return make_plan(input, parse_policy(policy)).predicted.step_seconds;
  } catch (const Error&) {
    return INFINITY;
  }
}

TEST(BraidPolicy, IsNeverPredictedToBeSlowerThanAnyOther) {
  RandomStream random(11);
  int planned = 0;
  for (int i = 0; i < 8; ++i) {
    const Request request = any_request(random);
    const Study study = request.study();
    const PlanningInput input = study.input(request.overrides);
    std::optional<Plan> plan;
    try {
      plan = make_plan(input, parse_policy("braid"));
    } catch (const Error&) {
    }
    const double mine = plan ? plan->predicted.step_seconds : INFINITY;
    for (const auto& policy : policies()) {
      if (policy->unites()) continue;
      EXPECT_LE(mine, seconds_of_plan(input, std::string(policy->name()))) << policy->name();
    }
    if (!plan) continue;
    ++planned;
    EXPECT_EQ(plan->policy, "braid");
    EXPECT_GT(plan->lower_bound.step_seconds, 0);
    EXPECT_LE(plan->lower_bound.step_seconds, mine);
    EXPECT_FALSE(plan->truncated);
  }
  EXPECT_GE(planned, 4);
}

/// Lengths of which few fit every replica, so that unlike ones with bins are the fastest.
Study long_tail() {
  RandomStream random(5);
  Request request;
  request.workload.file = "long_tail.yaml";
  request.workload.backbone = costmodel::builtin_backbone("llama3.1-8b");
  for (int t = 0; t < 3; ++t) {
    workload::Task task;
    task.name = fmt::format("t{}", t);
    task.adapter.rank = task.adapter.alpha = 16;
    task.adapter.targets = {true, true, true, true};
    task.global_batch_size = 64;
    task.steps = 12;
    task.seed = static_cast<std::uint64_t>(t);
    std::vector<workload::SampleSize>& mine = request.sizes.emplace_back();
    for (int i = 0; i < 128; ++i) {
      const bool is_long = i % 64 == 0;
      const auto tokens = static_cast<std::int64_t>(is_long ? 12000 : 100 + random.next_below(300));
      mine.push_back({tokens, tokens / 2});
    }
    task.max_length = 12000;
    request.workload.tasks.push_back(std::move(task));
  }
  request.cluster.gpu = "a100-40";
  request.use(1, 8);
  request.memory = costmodel::device_of("a100-40").memory_bytes;
  return request.study();
}

TEST(BraidPolicy, PacksBinsOnUnlikeReplicas) {
  const Study study = long_tail();
  const PlanningInput input = study.input();
  const Plan plan = make_plan(input, parse_policy("braid"));
  ASSERT_TRUE(plan.fixed.batching.bins && plan.fixed.batching.bins->unlike) << plan.reasons.front();
  EXPECT_GT(plan.fixed.batching.bins->unlike->speeds.size(), 1u);
  for (const char* other : {"lobra:kernels=fused", "lorafusion"})
    EXPECT_LT(plan.predicted.step_seconds, seconds_of_plan(input, other)) << other;
}

TEST(BraidPolicy, StopsAtItsBudgetAndSaysSo) {
  RandomStream random(3);
  Request request = any_request(random);
  request.memory = 0;
  request.overrides = {};
  const Study study = request.study();
  PlanningInput input = study.input();
  input.budget_seconds = 1e-9;
  const Plan plan = make_plan(input, parse_policy("braid"));
  EXPECT_TRUE(plan.truncated);
  EXPECT_NE(to_json(plan).find("\"truncated\": true"), std::string::npos);
}

TEST(BraidPolicy, DoesWhatOverridesAskFor) {
  RandomStream random(3);
  Request request = any_request(random);
  request.memory = 0;
  request.use(1, 4);
  const Study study = request.study();
  Overrides overrides;
  overrides.pp = 2;
  overrides.microbatches = 2;
  const Plan plan = make_plan(study.input(overrides), parse_policy("braid"));
  for (const ReplicaShape& replica : plan.fixed.deployment) EXPECT_EQ(replica.stages(), 2);
  EXPECT_EQ(plan.fixed.batching.microbatches, 2);
  overrides.pp = 1000;
  EXPECT_THROW(make_plan(study.input(overrides), parse_policy("braid")), Error);
}

}  // namespace
}  // namespace braid::planner
