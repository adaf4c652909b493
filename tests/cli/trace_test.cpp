#include <nlohmann/json.hpp>

#include "cli/testing.h"
#include "support.h"

namespace braid::cli {
namespace {

using testing::run_braid;

std::string path(const TestFolder& folder, const std::string& name) {
  return (folder / name).string();
}

TEST(TraceCommand, GeneratesSlicesScalesAndTellsTheLoad) {
  const TestFolder folder;
  const std::string week = path(folder, "week.csv"), part = path(folder, "part.csv"), busy = path(folder, "busy.csv");
  ASSERT_EQ(run_braid("trace generate --jobs 500 --gpus 1:3,4:1 --virtual-clusters 2 --seed 7 --out " + week).status,
            0);
  ASSERT_EQ(run_braid("trace slice " + week + " --vc vc1 --most-gpus 1 --out " + part).status, 0);
  ASSERT_EQ(run_braid("trace scale " + part + " --load 0.8 --gpus 16 --out " + busy).status, 0);
  const Outcome told = run_braid("trace stats " + busy + " --gpus 16 --json");
  ASSERT_EQ(told.status, 0);
  const auto json = nlohmann::json::parse(told.text);
  EXPECT_NEAR(json["offered_load"].get<double>(), 0.8, 1e-3);
  EXPECT_EQ(json["virtual_clusters"].size(), 1U);
  EXPECT_EQ(json["jobs_by_gpus"].size(), 1U);
  // The same seed writes the same bytes, to a file or to stdout.
  EXPECT_EQ(run_braid("trace generate --jobs 500 --gpus 1:3,4:1 --virtual-clusters 2 --seed 7").text,
            testing::read_text(folder / "week.csv"));
  EXPECT_EQ(run_braid("trace resample " + week + " --jobs 90 --seed 3").text,
            run_braid("trace resample " + week + " --jobs 90 --seed 3").text);
}

TEST(TraceCommand, ReadsAPipeAsItReadsAFile) {
  const TestFolder folder;
  const std::string job = R"("attempts": [{"start_time": 1, "end_time": 2, "detail": [{"gpus": ["g"]}]}]})";
  for (const std::string& file : {folder.write("t.csv", "\n\nsubmit_s,duration_s\n0,1\n2,3\n").string(),
                                  folder.write("t.json", "\n [{\"submitted_time\": 0, " + job + "]").string()}) {
    const std::string stats = std::string(BRAID_PROGRAM) + " trace stats /dev/stdin --json ";
    const Outcome redirected = run_shell(stats + "< " + file), piped = run_shell("cat " + file + " | " + stats);
    EXPECT_EQ(piped.status, 0) << piped.text;
    EXPECT_EQ(piped.text, redirected.text);
    auto read = nlohmann::json::parse(run_braid("trace stats --json " + file).text);
    read["trace"] = "/dev/stdin";
    EXPECT_EQ(nlohmann::json::parse(piped.text), read);
  }
}

TEST(TraceCommand, StatsTellColumnsThatAreNotRead) {
  const TestFolder folder;
  const std::string file = folder.write("t.csv", "submit_s,prority,duration_s,team\n0,1,2,3\n").string();
  EXPECT_TRUE(contains(run_braid("trace stats " + file).text, "  unread columns    prority, team\n"));
  EXPECT_EQ(nlohmann::json::parse(run_braid("trace stats --json " + file).text)["unread_columns"],
            (std::vector<std::string>{"prority", "team"}));
  const std::string latin = folder.write("l.csv", "submit_s,duration_s,priorit\xE9\n0,1,2\n").string();
  EXPECT_EQ(nlohmann::json::parse(run_braid("trace stats --json " + latin).text)["unread_columns"].size(), 1U);
}

TEST(TraceCommand, JobsWithoutTimeBetweenThemHaveNoLoad) {
  const TestFolder folder;
  for (const auto& [rows, why] : {std::pair("0,9\n", "one job alone"), std::pair("0,9\n0,9\n", "at one moment")}) {
    const std::string file = folder.write("t.csv", std::string("submit_s,duration_s\n") + rows).string();
    const Outcome told = run_braid("trace stats " + file);
    EXPECT_EQ(told.status, 0);
    EXPECT_TRUE(contains(told.text, "offered load        none: ") && contains(told.text, why)) << told.text;
    EXPECT_FALSE(contains(told.text, "inf")) << told.text;
    EXPECT_TRUE(nlohmann::json::parse(run_braid("trace stats --json " + file).text)["offered_load"].is_null());
  }
}

TEST(TraceCommand, ColumnsOfAnyNamesAreRead) {
  const TestFolder folder;
  const std::string file = folder.write("t.csv", "when,took,cards\n0,9,2\n10,9,1\n").string();
  const Outcome told = run_braid("trace stats --json --columns submit=when,duration=took,gpus=cards " + file);
  ASSERT_EQ(told.status, 0) << told.text;
  EXPECT_EQ(nlohmann::json::parse(told.text)["gpu_seconds"], 27.0);
  for (const char* bad : {"submit", "submit=", "=when", "submit=when,", "submit=when,submit=took"}) {
    const Outcome refused = run_braid(std::string("trace stats --columns ") + bad + " " + file);
    EXPECT_EQ(refused.status, 2) << bad;
    EXPECT_TRUE(contains(refused.text, "error: --columns")) << refused.text;
  }
}

TEST(TraceCommand, StatsTellWhatWasLeftOutOfJobs) {
  const TestFolder folder;
  const std::string file = folder
                               .write("t.json", R"([{"submitted_time": 0, "attempts": [
            {"start_time": 1, "end_time": 2, "detail": [{"gpus": ["g"]}]}, {"start_time": 3, "end_time": "None"}]}])")
                               .string();
  EXPECT_TRUE(
      contains(run_braid("trace stats " + file).text, "attempts          1 without a start or an end, left out"));
  EXPECT_EQ(nlohmann::json::parse(run_braid("trace stats --json " + file).text)["attempts_left_out"], 1);
}

TEST(TraceCommand, BadInputIsSaidAndLosesNothing) {
  const TestFolder folder;
  const std::string file = folder.write("t.csv", "submit_s,duration_s\n0,1\n1,-2\n").string();
  const auto refuses = [&](const std::string& words, const std::string& what) {
    const Outcome outcome = run_braid("trace " + words);
    EXPECT_EQ(outcome.status, 2) << words;
    EXPECT_TRUE(contains(outcome.text, what)) << words << ": " << outcome.text;
  };
  refuses("stats " + file, "t.csv:3: duration_s -2 is negative");
  EXPECT_EQ(run_braid("trace stats " + file + " --lenient").status, 0);
  refuses("stats " + path(folder, "none.csv"), "cannot be read");
  refuses("stats " + file + " --lenient --gpus 0", "--gpus 0 is not usable");
  refuses("slice " + file + " --lenient --from 2017-01-01", "the trace has no dates");
  refuses("slice " + file + " --lenient --vc a", "names no virtual clusters");
  refuses("scale " + file + " --lenient --load 1 --times 2", "are both given");
  refuses("generate --duration normal", "give lognormal or pareto");
  refuses("generate --longest 90", "means nothing without --duration pareto");
  refuses("generate --virtual-clusters -4", "give 0 or more");
  refuses("generate --gpus 1:x", "give counts with weights");
  refuses("generate --jobs 0", "give a number >= 1");
  refuses("polish " + file, "actions: stats, slice, scale, resample, generate");
  refuses("generate --out " + file, "exists");
  EXPECT_EQ(testing::read_text(folder / "t.csv"), "submit_s,duration_s\n0,1\n1,-2\n");
}

}  // namespace
}  // namespace braid::cli
