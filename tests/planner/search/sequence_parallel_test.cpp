#include <gtest/gtest.h>

#include "planner/policies/registry.h"
#include "planner/studies.h"
#include "support.h"

namespace braid::planner {
namespace {

using testing::make_study;
using testing::Study;

Overrides two_shards() {
  Overrides overrides;
  overrides.tp = 2;
  overrides.pp = 1;
  return overrides;
}

class SequenceParallel : public ::testing::TestWithParam<std::string> {};

/// Ranks hold a share of the rows between products, and the bounds know it.
TEST_P(SequenceParallel, HoldsLessOnEveryRankOfTheSameDeployment) {
  const Study study = make_study({{512, 8}, {256, 8}}, 1, 4);
  const PlanningInput input = study.input(two_shards());
  const Plan off = make_plan(input, parse_policy(GetParam()));
  const Plan on = make_plan(input, parse_policy(GetParam() + ":sequence_parallel=on"));
  for (const ReplicaShape& replica : off.fixed.deployment) EXPECT_FALSE(replica.sequence_parallel);
  for (const ReplicaShape& replica : on.fixed.deployment) EXPECT_TRUE(replica.sequence_parallel);
  EXPECT_LE(on.lower_bound.step_seconds, on.predicted.step_seconds);
  FixedPlan whole = on.fixed;
  for (ReplicaShape& replica : whole.deployment) replica.sequence_parallel = false;
  Prediction prediction;
  Predictor(whole, {study.workload, study.samples}, Outlook::full).memory(prediction);
  for (std::size_t rank = 0; rank < prediction.peak_memory_bytes.size(); ++rank)
    EXPECT_LT(on.predicted.peak_memory_bytes[rank], prediction.peak_memory_bytes[rank]) << "rank " << rank;
}

INSTANTIATE_TEST_SUITE_P(Policies, SequenceParallel,
                         ::testing::Values("nemo:resident=false", "muxtune", "lobra", "task-fused", "lorafusion",
                                           "braid"),
                         [](const auto& policy) {
                           std::string name;
                           for (const char letter : policy.param.substr(0, policy.param.find(':')))
                             name += letter == '-' ? '_' : letter;
                           return name;
                         });

TEST(SequenceParallelChoice, StandsInThePlansFileAndInWhatIsSaidOfIt) {
  const TestFolder folder;
  const Study study = make_study({{512, 4}}, 1, 2);
  const Plan plan = make_plan(study.input(two_shards()), parse_policy("nemo:sequence_parallel=on"));
  folder.write("plan.json", to_json(plan));
  EXPECT_EQ(read_plan(folder / "plan.json").fixed.deployment, plan.fixed.deployment);
  EXPECT_EQ(describe(plan.fixed.deployment), "tp 2 with sequence parallelism, pp 1");
  const Plan off = make_plan(study.input(two_shards()), parse_policy("nemo"));
  EXPECT_EQ(to_json(off).find("\"sequence_parallel\": true"), std::string::npos);
  EXPECT_THROW(parse_policy("megatron-pp:sequence_parallel=on"), Error);
}

}  // namespace
}  // namespace braid::planner
