#include "cli/workspace.h"

/// What would change nothing, or take away what it was given, is refused.
namespace braid::cli {
namespace {

using IgnoredInput = testing::Workspace;
using testing::read_text;
using testing::run_braid;
using testing::write_text;

TEST_F(IgnoredInput, JsonIsNotAskedOfWhatPrintsNone) {
  expect_bad_input("profile --json --check " + path("profile.json") + " " + path("profile.json"), "leave it out");
  expect_bad_input("profile --json --analytic h100 --out " + path("p.json"), "leave it out", "p.json");
  expect_bad_input("trace generate --json --out " + path("t.csv"), "--json is not an option of this command", "t.csv");
  expect_bad_input("task pause " + path("run") + " task0 --json", "--json is of `braid task list`");
}

TEST_F(IgnoredInput, WhatIsReadIsNotWrittenOver) {
  const std::string before = read_text(folder / "workload.yaml");
  for (const std::string flag : {"--out", "--timeline-out"}) {
    const std::string command = flag == "--out" ? "plan " : "train --out " + path("out") + " ";
    expect_bad_input(command + planning() + " --overwrite " + flag + " " + path("workload.yaml"),
                     "workload.yaml: is what --workload names, and would be written over");
  }
  EXPECT_EQ(read_text(folder / "workload.yaml"), before);
}

TEST_F(IgnoredInput, APlanLeavesNothingToMeasure) {
  ASSERT_EQ(run_braid("plan " + planning() + " --ranks 1 --out " + path("plan.json")).status, 0);
  expect_bad_input("train --plan " + path("plan.json") + " --profile-budget 5 --out " + path("out"),
                   "--profile-budget is of what is measured before planning");
}

TEST_F(IgnoredInput, KeysOfAProfile) {
  const std::string profile = read_text(folder / "profile.json");
  const auto refused = [&](const std::string& added, const std::string& words) {
    std::string text = profile;
    text.insert(text.find("\"peak_flops\""), added + ",\n  ");
    write_text(folder / "odd.json", text);
    expect_bad_input("plan --workload " + path("workload.yaml") + " --profile " + path("odd.json"), words);
  };
  refused("\"peak_flop\": 1e9", "unknown key 'peak_flop'; valid keys: format, machine");
  refused("\"clock\": 0.5", "'clock' is of a GPU's datasheet, which the profile has none of");
}

TEST_F(IgnoredInput, ASecondDocument) {
  write_text(folder / "workload.yaml", workload() + "---\ntasks: []\n");
  expect_bad_input("plan " + planning(), "a second document begins");
}

TEST_F(IgnoredInput, JobsOfATrace) {
  write_text(folder / "trace.csv", "submit_s,duration_s\n0,60\n30,90\n");
  expect_bad_input("trace resample " + path("trace.csv") + " --jobs 0", "--jobs 0 is not usable; give 1 or more");
}

TEST_F(IgnoredInput, AReportDoesNotTakeThePlaceOfWhatItIsMadeOf) {
  ASSERT_EQ(run_braid("plan " + planning() + " --ranks 1 --out " + path("plan.json")).status, 0);
  const std::string plan = read_text(folder / "plan.json");
  for (const std::string& from : {path("plan.json"), folder.string()})
    expect_bad_input("report " + from + " --overwrite --out " + path("plan.json"),
                     "plan.json: is what the report is made of, and would be written over");
  EXPECT_EQ(read_text(folder / "plan.json"), plan);
  expect_bad_input("report", "PATH is missing; see --help");
}

}  // namespace
}  // namespace braid::cli
