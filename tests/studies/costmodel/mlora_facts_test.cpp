#include "studies/costmodel/mlora_facts.h"

#include <cmath>
#include <stdexcept>

#include <gtest/gtest.h>

namespace braid::costmodel::studies {
namespace {

LaunchFact find(const std::vector<LaunchFact>& facts, const std::string& backbone, const std::string& runs,
                std::int64_t tasks) {
  for (const LaunchFact& fact : facts) {
    if (fact.backbone == backbone && fact.runs == runs && fact.tasks == tasks) return fact;
  }
  throw std::logic_error("no such fact");
}

TEST(MloraFacts, BatchedTasksShareTheBackbonesLaunches) {
  const std::vector<LaunchFact> facts = launch_facts();
  for (const std::string& backbone : mlora_backbones()) {
    const LaunchFact& one = find(facts, backbone, "peft", 1);
    const double beta = one.adapter_launches, alpha = one.launches - beta;
    ASSERT_GT(beta, 0);
    ASSERT_GT(alpha, beta);
    for (const std::int64_t tasks : {1, 2, 4}) {
      const auto k = static_cast<double>(tasks);
      const LaunchFact& batched = find(facts, backbone, "batched", tasks);
      EXPECT_NEAR(find(facts, backbone, "peft", tasks).launches, k * (alpha + beta), 1e-6);
      EXPECT_NEAR(batched.launches, alpha + k * beta, 1e-6);
      // Each of the four modules' splits is one more kernel a task.
      const double splits = find(facts, backbone, "batched, graph not pruned", tasks).launches - batched.launches;
      EXPECT_GT(splits, 0);
      EXPECT_NEAR(splits, k * find(facts, backbone, "batched, graph not pruned", 1).launches - k * one.launches, 1e-6);
    }
  }
}

TEST(MloraFacts, AStepTakesNoLessThanItsKernelsOrItsLaunches) {
  for (const LaunchFact& fact : launch_facts()) {
    EXPECT_GE(fact.step_seconds, fact.kernel_seconds * (1 - 1e-12));
    EXPECT_GE(fact.step_seconds, fact.launch_seconds * (1 - 1e-12));
    EXPECT_LT(fact.step_seconds, fact.kernel_seconds + fact.launch_seconds);
  }
}

TEST(MloraFacts, ExposedLaunchesGiveTheFiguresSharesInTheGeometricMean) {
  double logarithms = 0;
  for (const std::string& backbone : mlora_backbones()) {
    const LaunchFact& peft = find(launch_facts(), backbone, "peft", 1);
    const double waited = peft.launches * exposed_launch_seconds(), share = paper_launch_share(backbone);
    logarithms += std::log(waited / peft.kernel_seconds * (1 - share) / share);
  }
  EXPECT_NEAR(logarithms, 0, 1e-12);
}

TEST(MloraFacts, MemoryIsLearnedBetterFromMorePoints) {
  const std::vector<MemoryFitFact> facts = memory_fit_facts();
  for (const MemoryFitFact& few : facts) {
    for (const MemoryFitFact& more : facts) {
      if (few.backbone == more.backbone && few.least_tokens == more.least_tokens && few.points == 3 &&
          more.points == 12) {
        EXPECT_LT(more.mean_error, few.mean_error);
      }
    }
  }
}

}  // namespace
}  // namespace braid::costmodel::studies
