#include "planner/plan/plan_change.h"

#include <gtest/gtest.h>

#include "costmodel/work/memory.h"
#include "planner/studies.h"
#include "support.h"

namespace braid::planner {
namespace {

constexpr std::int64_t kLayers = 8;

Plan plan_on(std::int64_t tp, std::int64_t pp, std::int64_t replicas) {
  Plan plan;
  plan.workload = testing::study_workload({{64}, {128}}, kLayers);
  plan.fixed.deployment = deploy(kLayers, tp, pp, replicas);
  return plan;
}

Bytes whole_backbone() {
  const Plan plan = plan_on(1, 1, 1);
  const auto bytes = [&](const costmodel::StageShape& stage) {
    return costmodel::backbone_bytes(plan.workload.backbone, stage, plan.fixed.storage);
  };
  return kLayers * bytes({1, false, false, 1}) + bytes({0, true, false, 1}) + bytes({0, false, true, 1});
}

TEST(PlanChange, WhatLiesWhereItLayIsNotLoaded) {
  for (const auto& [tp, pp, replicas] : {std::tuple(1, 1, 2), {2, 1, 2}, {1, 4, 1}, {2, 2, 2}}) {
    const PlanChange change = change_of(plan_on(tp, pp, replicas), plan_on(tp, pp, replicas));
    EXPECT_EQ(change.loaded, 0);
    EXPECT_EQ(change.loading_ranks, 0);
    EXPECT_EQ(change.stay, 2);
    EXPECT_GT(change.adapters, 0);
    EXPECT_TRUE(describe(change).ends_with("all weights lie where they lay")) << describe(change);
  }
}

/// Replicas of one stage hold all that any stage or shard needs.
TEST(PlanChange, StagesAndShardsOfAWholeBackboneAreThere) {
  EXPECT_EQ(change_of(plan_on(1, 1, 4), plan_on(1, 4, 1)).loaded, 0);
  EXPECT_EQ(change_of(plan_on(1, 1, 4), plan_on(4, 1, 1)).loaded, 0);
  EXPECT_EQ(change_of(plan_on(1, 1, 4), plan_on(2, 2, 1)).loaded, 0);
}

/// A policy that keeps a copy of the backbone for each task loads another for each that joins.
TEST(PlanChange, OfCopiesThoseThatAreMoreAreLoaded) {
  Plan two = plan_on(1, 2, 1), three = plan_on(1, 2, 1);
  two.fixed.backbone_copies = 2;
  three.fixed.backbone_copies = 3;
  EXPECT_NEAR(static_cast<double>(change_of(two, three).loaded), static_cast<double>(whole_backbone()), 8);
  EXPECT_EQ(change_of(three, two).loaded, 0);
  EXPECT_EQ(change_of(three, three).loaded, 0);
}

/// What all ranks hold after is what they held before and what they load.
TEST(PlanChange, WhatIsMissingIsLoaded) {
  const auto near = [](Bytes loaded, double backbones) {
    EXPECT_NEAR(static_cast<double>(loaded), backbones * static_cast<double>(whole_backbone()), 8);
  };
  near(change_of(plan_on(1, 2, 1), plan_on(1, 1, 2)).loaded, 1);
  near(change_of(plan_on(4, 1, 1), plan_on(1, 1, 4)).loaded, 3);
  near(change_of(plan_on(2, 2, 1), plan_on(1, 1, 4)).loaded, 3);
  near(change_of(plan_on(1, 1, 1), plan_on(1, 1, 3)).loaded, 2);
  // The first and the last shard of four lie within those of two; the others lie in the other half.
  near(change_of(plan_on(2, 1, 2), plan_on(4, 1, 1)).loaded, 0.5);
  const PlanChange grown = change_of(plan_on(1, 1, 1), plan_on(1, 1, 3));
  EXPECT_EQ(grown.loading_ranks, 2);
  near(grown.most_loaded, 1);
  Plan shares = plan_on(1, 1, 4);
  shares.fixed.shards_weights = true;
  near(change_of(shares, plan_on(1, 1, 4)).loaded, 3);
  EXPECT_EQ(change_of(plan_on(1, 1, 4), shares).loaded, 0);
}

TEST(PlanChange, TasksAreToldApartByNameAndAdapter) {
  Plan after = plan_on(1, 1, 1);
  after.workload.tasks[0].name = "new";
  PlanChange change = change_of(plan_on(1, 1, 1), after);
  EXPECT_EQ(change.joined, std::vector<std::string>{"new"});
  EXPECT_EQ(change.left, std::vector<std::string>{"task0"});
  EXPECT_EQ(change.stay, 1);
  after.workload.tasks[1].adapter.rank *= 2;
  change = change_of(plan_on(1, 1, 1), after);
  EXPECT_EQ(change.joined, (std::vector<std::string>{"new", "task1"}));
  EXPECT_EQ(change.stay, 0);
  EXPECT_EQ(change.adapters, 0);
}

TEST(PlanChange, IsOfOneBackbone) {
  Plan other = plan_on(1, 1, 1);
  other.workload.backbone.hidden *= 2;
  EXPECT_TRUE(contains(error_of([&] { change_of(other, plan_on(1, 1, 1)); }), "give a plan of the same backbone"));
}

}  // namespace
}  // namespace braid::planner
