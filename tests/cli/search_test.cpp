#include "base/node.h"
#include "cli/workspace.h"

namespace braid::cli {
namespace {

using testing::Outcome;
using testing::read_text;
using testing::run_braid;
using testing::write_text;

class SearchedRun : public testing::Workspace {
 protected:
  void SetUp() override {
    Workspace::SetUp();
    write_text(folder / "workload.yaml",
               "backbone: " BRAID_SOURCE_DIR
               "/tests/golden/llama\ntasks:\n"
               "  - {name: quiz, dataset: data0.jsonl, max_length: 16, adapter: {r: [2, 4]}, global_batch_size: 4, "
               "steps: 9, optimizer: {lr: [1e-2, 1e-3, 1e-4]}, evaluation: {fraction: 0.25, every: 5}, "
               "search: {halving: 3, keep: 2}}\n");
  }

  /// By task.
  std::map<std::string, Node> status(const std::string& run) const {
    std::map<std::string, Node> tasks;
    const Node told = parse_json(run_braid("status --json " + path(run)).text, "status");
    for (const Node& task : told.at("tasks").sequence("tasks")) tasks.emplace(task.string_at("task"), task);
    return tasks;
  }
  /// "TASK STEP": the loss, of evaluations.
  std::map<std::string, std::string> evaluations(const std::string& run) const {
    std::map<std::string, std::string> told;
    std::istringstream text(read_text(folder / run / "metrics.jsonl"));
    for (std::string line; std::getline(text, line);) {
      const Node node = parse_json(line, "metrics.jsonl");
      if (!node.find("eval_loss")) continue;
      const std::string step = node.string_at("task") + " " + std::to_string(node.integer_at("step"));
      EXPECT_FALSE(told.contains(step)) << step;
      told[step] = node.at("eval_loss").text;
    }
    return told;
  }
};

TEST_F(SearchedRun, TheBestAreTrainedToTheirEndAndRanked) {
  const std::string train = "train --quiet " + planning() + " --policy hf-peft --ranks 1 --out ";
  const Outcome outcome = run_braid(train + path("run"));
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("search quiz, by the best eval loss:\n   1. quiz-r"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("best eval loss  at step"), std::string::npos);
  const auto tasks = status("run");
  ASSERT_EQ(tasks.size(), 6U);
  const auto told = evaluations("run");
  // The two that were best after 3 steps.
  std::vector<std::pair<double, std::string>> ranking;
  for (const auto& [name, task] : tasks) ranking.emplace_back(std::stod(told.at(name + " 3")), name);
  std::ranges::sort(ranking);
  for (std::size_t place = 0; place < ranking.size(); ++place) {
    const Node& task = tasks.at(ranking[place].second);
    EXPECT_EQ(task.string_at("state"), place < 2 ? "finished" : "outranked");
    EXPECT_EQ(task.integer_at("step"), place < 2 ? 9 : 3);
    EXPECT_EQ(told.contains(task.string_at("task") + " 5"), place < 2);
    EXPECT_EQ(told.contains(task.string_at("task") + " 9"), place < 2) << "after the last";
    EXPECT_GT(task.at("best_evaluation").number_at("eval_loss"), 0);
    for (const char* which : {"adapters", "best"})
      EXPECT_TRUE(std::filesystem::exists(folder / "run" / which / task.string_at("task") / "adapter_config.json"));
  }
  // The same again, to the digit.
  ASSERT_EQ(run_braid(train + path("again")).status, 0);
  EXPECT_EQ(evaluations("again"), told);
}

/// Two of six train at once. Each takes the very steps that it takes among all, and the same are ended.
TEST_F(SearchedRun, PlacesGoToTheNext) {
  const std::string options = " --profile " + path("profile.json") + " --foreign-profile --policy hf-peft --ranks 1";
  const auto train = [&](const std::string& workload, const std::string& run, const std::string& more = "") {
    return run_braid("train --workload " + path(workload) + options + " --out " + path(run) + more);
  };
  std::string text = read_text(folder / "workload.yaml");
  text.replace(text.find("keep: 2"), 7, "keep: 2, at_once: 2");
  write_text(folder / "few.yaml", text);
  ASSERT_EQ(train("workload.yaml", "all").status, 0);

  const Outcome planned =
      run_braid("plan --quiet --workload " + path("few.yaml") + options + " --out " + path("plan.json"));
  ASSERT_EQ(planned.status, 0) << planned.text;
  const Node plan = parse_json(read_text(folder / "plan.json"), "plan");
  EXPECT_EQ(plan.at("htasks").sequence("htasks").size(), 2U);
  const Outcome simulated = run_braid("simulate --json --plan " + path("plan.json"));
  ASSERT_EQ(simulated.status, 0) << simulated.text;
  const Node told = parse_json(simulated.text, "prediction");
  EXPECT_EQ(told.at("run").integer_at("halved_steps"), 2 * 9 + 4 * 3);
  EXPECT_EQ(told.at("run").integer_at("steps"), 6 * 9);

  const Outcome few = train("few.yaml", "few");
  ASSERT_EQ(few.status, 0) << few.text;
  EXPECT_NE(few.text.find(" has a place"), std::string::npos) << few.text;
  EXPECT_EQ(evaluations("few"), evaluations("all"));
  const auto expected = status("all"), found = status("few");
  for (const auto& [name, task] : expected) {
    EXPECT_EQ(found.at(name).string_at("state"), task.string_at("state")) << name;
    EXPECT_EQ(found.at(name).integer_at("step"), task.integer_at("step")) << name;
    const std::string adapter = "adapters/" + name + "/adapter_model.safetensors";
    EXPECT_TRUE(read_text(folder / "few" / adapter) == read_text(folder / "all" / adapter)) << name;
  }

  // From --plan, and with the state kept after every step: stopped at any of them the run goes on to the same end.
  ASSERT_EQ(run_braid("train --quiet --plan " + path("plan.json") +
                      " --checkpoint-steps 1 --checkpoints-kept 100 --out " + path("kept"))
                .status,
            0);
  EXPECT_EQ(evaluations("kept"), evaluations("all"));

  // Killed at any moment, again and again.
  const std::string again = " train --quiet --checkpoint-steps 1 --out " + path("killed");
  int status = -1;
  for (int kills = 0; kills < 12 && status != 0; ++kills) {
    const bool begun = std::filesystem::exists(folder / "killed/plan.json");
    const std::string limit = kills < 10 ? fmt::format("timeout -s KILL {} ", 0.1 + 0.03 * kills) : "";
    status = testing::run_shell(limit + BRAID_PROGRAM + again +
                                (begun ? " --resume" : " --overwrite --plan " + path("plan.json")))
                 .status;
  }
  EXPECT_EQ(status, 0);
  EXPECT_EQ(evaluations("killed"), evaluations("all"));
}

TEST_F(SearchedRun, ASimulationTellsWhatHalvingSpares) {
  ASSERT_EQ(run_braid("plan --quiet " + planning() + " --policy hf-peft --ranks 1 --out " + path("plan.json")).status,
            0);
  const Outcome outcome = run_braid("simulate --json --plan " + path("plan.json"));
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  const Node node = parse_json(outcome.text, "prediction");
  const Node& run = node.at("run");
  EXPECT_EQ(run.integer_at("steps"), 6 * 9);
  EXPECT_EQ(run.integer_at("halved_steps"), 2 * 9 + 4 * 3);
  // About in proportion to the steps: tasks are of one size, and their evaluations few.
  EXPECT_NEAR(run.number_at("halved_seconds") / run.number_at("seconds"), 30.0 / 54, 0.1);
  EXPECT_NE(run_braid("simulate --plan " + path("plan.json")).text.find("with halving (30 steps)"), std::string::npos);
}

TEST_F(SearchedRun, ASearchThatEndsNobodyIsRefused) {
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& words) {
    std::string text = read_text(folder / "workload.yaml");
    text.replace(text.find(from), from.size(), to);
    write_text(folder / "bad.yaml", text);
    const Outcome outcome = run_braid("plan --workload " + path("bad.yaml") + " --profile " + path("profile.json") +
                                      " --foreign-profile --ranks 1");
    EXPECT_EQ(outcome.status, 2) << outcome.text;
    EXPECT_NE(outcome.text.find(words), std::string::npos) << outcome.text;
  };
  refused("keep: 2", "keep: 6", "search 'quiz' keeps 6 of 6 tasks, and so ends none");
  refused("halving: 3", "metric: accuracy", "unknown metric 'accuracy'; valid: eval_loss");
  refused("halving: 3", "halving: 1", "'halving' is '1'");
  refused("evaluation: {fraction: 0.25, every: 5}, ", "", "a search judges its tasks by what they are evaluated on");
  refused("fraction: 0.25", "fraction: 0.01", "leaves none to evaluate on");
}

}  // namespace
}  // namespace braid::cli
