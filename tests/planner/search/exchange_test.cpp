#include "planner/milp/exchange.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "planner/policies/registry.h"
#include "support.h"
#include "tests/planner/studies.h"

namespace braid::planner {
namespace {

using testing::Study;

/// Long samples are few, so that replicas are better unlike.
Study few_long() {
  return testing::with_memory(testing::make_study({{2048, 4, 4}, {512, 16, 4}}, 1, 8, 32), 10'000'000'000);
}

class ExchangedModels : public ::testing::Test {
 protected:
  std::filesystem::path solution(const std::string& text) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "given.sol") << text;
    return folder_ / "given.sol";
  }
  Plan planned(const std::string& policy, milp::Exchange& models) const {
    PlanningInput input = study_.input();
    input.models = &models;
    return make_plan(input, parse_policy(policy));
  }

  const TestFolder own_;
  const std::filesystem::path folder_ = own_.path() / "exchanged_models";
  const Study study_ = few_long();
};

TEST_F(ExchangedModels, AreWrittenUnderNamesThatSayWhatTheyAre) {
  milp::Exchange models(folder_, {});
  planned("lobra", models);
  ASSERT_GE(models.written().size(), 2u);
  EXPECT_EQ(models.written()[0], "deployment");
  EXPECT_EQ(models.written()[1], "dispatch");
  milp::Exchange bins(folder_, {});
  planned("lorafusion", bins);
  ASSERT_GE(bins.written().size(), 2u);
  EXPECT_EQ(bins.written()[0], "fewest_bins");
  EXPECT_EQ(bins.written()[1], "emptiest_bin");
  for (const milp::Exchange* one : {&models, &bins}) {
    for (const std::string& name : one->written()) {
      EXPECT_GT(std::filesystem::file_size(folder_ / (name + ".lp")), 100u);
      EXPECT_GT(std::filesystem::file_size(folder_ / (name + ".mps")), 100u);
    }
  }
}

TEST_F(ExchangedModels, AGivenSolutionIsThePlansDeployment) {
  milp::Exchange none({}, {});
  const Plan usual = planned("lobra", none);
  // One replica of each candidate in turn, until one holds the longest samples and leaves GPUs idle that the usual
  // plan would have used.
  int taken = 0;
  for (int c = 0; c < 8 && taken == 0; ++c) {
    milp::Exchange models({}, solution("replicas" + std::to_string(c) + "_are1 1\n"));
    try {
      const Plan plan = planned("lobra", models);
      EXPECT_EQ(plan.fixed.deployment.size(), 1u);
      EXPECT_GE(plan.predicted.step_seconds, usual.predicted.step_seconds);
      ++taken;
    } catch (const Error&) {
    }
    EXPECT_TRUE(models.was_used());
  }
  EXPECT_EQ(taken, 1);
}

TEST_F(ExchangedModels, ASolutionThatIsNoneIsRefused) {
  for (const char* text : {"", "bin0_used 1\n", "replicas0_are1 many\n", "replicas0_are1 0\n"}) {
    milp::Exchange models({}, solution(text));
    EXPECT_THROW(planned("lobra", models), Error) << text;
  }
  milp::Exchange missing({}, folder_ / "none.sol");
  EXPECT_THROW(planned("lobra", missing), Error);
}

TEST(SolvedOptions, AreNeverWorseAndSayWhatTheyProved) {
  const Study study = few_long();
  const Plan searched = make_plan(study.input(), parse_policy("lobra"));
  const Plan solved = make_plan(study.input(), parse_policy("lobra:deployment=solved"));
  EXPECT_LE(solved.predicted.step_seconds, 1.02 * searched.predicted.step_seconds);
  EXPECT_TRUE(std::any_of(solved.reasons.begin(), solved.reasons.end(), [](const std::string& reason) {
    return reason.find("as a mixed-integer program") != std::string::npos;
  }));
  const Plan again = make_plan(study.input(), parse_policy("lobra:deployment=solved"));
  EXPECT_EQ(again.fixed.deployment, solved.fixed.deployment);
  EXPECT_EQ(again.predicted.step_seconds, solved.predicted.step_seconds);
  const Plan packed = make_plan(study.input(), parse_policy("lorafusion:packing=solved"));
  EXPECT_NE(packed.reasons.back().find("are proven to have the fewest"), std::string::npos) << packed.reasons.back();
}

}  // namespace
}  // namespace braid::planner
