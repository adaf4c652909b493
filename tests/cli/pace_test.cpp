#include <cstdlib>

#include "cli/workspace.h"

// A machine that computes at another pace than when its profile was measured.
namespace braid::cli {
namespace {

using testing::run_braid;

class Pace : public testing::Workspace {
 protected:
  void SetUp() override {
    Workspace::SetUp();
    ::setenv("XDG_CACHE_HOME", (folder / "cache").c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("XDG_CACHE_HOME");
    Workspace::TearDown();
  }

  Outcome plan() const {
    return run_braid("plan --overwrite --workload " + path("workload.yaml") +
                     " --ranks 1 --policy megatron-pp:pad_to=none --profile-budget 4 --out " + path("plan.json"));
  }
  Outcome train() const { return run_braid("train --overwrite --plan " + path("plan.json") + " --out " + path("run")); }

  /// The profile that was kept, as of a machine that took so many times as long.
  void slow_down(double times) const {
    for (const auto& kept : std::filesystem::directory_iterator(folder / "cache/braid")) {
      costmodel::Profile profile = costmodel::read_profile(kept.path());
      ASSERT_GT(profile.reference_pass_seconds, 0);
      profile.reference_pass_seconds *= times;
      for (costmodel::ProfileEntry& entry : profile.entries) entry.seconds *= times;
      testing::write_text(kept.path(), costmodel::to_json(profile));
    }
  }
  bool keeps_profile() const { return !std::filesystem::is_empty(folder / "cache/braid"); }
};

TEST_F(Pace, AProfileOfABusyMachineIsMeasuredAnewOfASlowedDownOneKept) {
  const Outcome first = plan();
  ASSERT_EQ(first.status, 0) << first.text;
  ASSERT_NE(first.text.find("measuring what the plan needs"), std::string::npos) << first.text;

  slow_down(1.0 / 16);
  const Outcome again = plan();
  ASSERT_EQ(again.text.find("measuring what the plan needs"), std::string::npos) << again.text;
  const Outcome slower = train();
  ASSERT_EQ(slower.status, 0) << slower.text;
  EXPECT_NE(slower.text.find(" times as slow as when the plan's profile was measured, as it is while others use it; "
                             "where that is to stay, measure it anew with `braid profile --workload FILE --overwrite`"),
            std::string::npos)
      << slower.text;
  EXPECT_TRUE(keeps_profile());

  slow_down(16.0 * 16);
  ASSERT_EQ(plan().status, 0);
  const Outcome faster = train();
  ASSERT_EQ(faster.status, 0) << faster.text;
  EXPECT_NE(faster.text.find(" times as fast as when the plan's profile was measured; the next plan measures it anew"),
            std::string::npos)
      << faster.text;
  EXPECT_FALSE(keeps_profile());
  EXPECT_NE(plan().text.find("measuring what the plan needs"), std::string::npos);
}

TEST_F(Pace, AProfileIsMeasuredFromNothingWhereItIsToBeOverwritten) {
  const std::string profile = "profile --workload " + path("workload.yaml") +
                              " --ranks 1 --policy megatron-pp:pad_to=none --profile-budget 2 --json --quiet";
  const auto points = [&](const std::string& more) {
    const Outcome outcome = run_braid(profile + more);
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    const std::filesystem::path file = std::filesystem::directory_iterator(folder / "cache/braid")->path();
    return costmodel::read_profile(file).measured_for.size();
  };
  EXPECT_EQ(points(""), 1U);
  EXPECT_EQ(points(" --tp 1"), 2U) << "added to what was measured";
  EXPECT_EQ(points(" --overwrite"), 1U);
}

}  // namespace
}  // namespace braid::cli
