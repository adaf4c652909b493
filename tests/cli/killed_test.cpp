#include <fstream>

#include "base/random.h"
#include "cli/background.h"

/// Runs that are ended from outside: nothing that was kept is lost, and what is gone on with ends as if nobody had
/// ended it.
namespace braid::cli {
namespace {

using testing::Outcome;
using testing::read_text;
using testing::run_braid;
using testing::write_text;

class KilledRun : public testing::BackgroundRun {
 protected:
  void SetUp() override {
    Workspace::SetUp();
    // Steps enough to be ended among them.
    std::string text = workload();
    for (int task = 0; task < 3; ++task) {
      const std::string steps = "steps: " + std::to_string(4 + task) + "\n";
      text.replace(text.find(steps), steps.size(), "steps: " + std::to_string(30 + 15 * task) + "\n");
    }
    write_text(folder / "workload.yaml", text);
  }

  /// Begins or goes on, and does not wait.
  pid_t start(const std::string& ranks) const {
    const bool begun = std::filesystem::exists(folder / "run" / "plan.json");
    return start_training("--checkpoint-steps 1 " +
                          (begun ? "--resume" : "--overwrite " + planning() + " --policy hf-peft --ranks " + ranks));
  }

  /// Processes that run the ranks of that run: those whose parent has the name that a rank's has not.
  std::vector<pid_t> ranks_of_run() const {
    std::vector<pid_t> ranks;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      std::ifstream words(entry.path() / "cmdline"), environment(entry.path() / "environ");
      const std::string line((std::istreambuf_iterator<char>(words)), {});
      if (line.find(path("run")) == std::string::npos || line.starts_with("mpirun")) continue;
      const std::string variables((std::istreambuf_iterator<char>(environment)), {});
      if (variables.find("OMPI_COMM_WORLD_RANK") != std::string::npos) ranks.push_back(std::stoi(name));
    }
    return ranks;
  }

  /// Steps of the newest checkpoint that is whole, of all tasks together.
  std::int64_t steps_kept() const {
    std::map<int, std::int64_t> kept;
    if (!std::filesystem::exists(folder / "run" / "checkpoints")) return 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "run" / "checkpoints")) {
      if (!std::filesystem::exists(entry.path() / "checkpoint.json")) continue;
      const Node node = read_json((entry.path() / "checkpoint.json").string());
      std::int64_t& steps = kept[std::stoi(entry.path().filename())];
      for (const Node& task : node.at("tasks").sequence("tasks")) steps += task.integer_at("steps_taken");
    }
    return kept.empty() ? 0 : kept.rbegin()->second;
  }
  /// As many as BRAID_KILLS says.
  static int kills(int otherwise) {
    const char* told = std::getenv("BRAID_KILLS");
    return told ? std::atoi(told) : otherwise;
  }
  /// Kills runs at random moments until that many were killed, each gone on with until it ends; `kill` does it.
  template <typename Kill>
  void kill_runs(int kills, const std::string& ranks, double longest_seconds, const Kill& kill) {
    const Outcome whole =
        run_braid("train --quiet " + planning() + " --policy hf-peft --ranks " + ranks + " --out " + path("whole"));
    ASSERT_EQ(whole.status, 0) << whole.text;
    const auto finished = adapters("whole");
    ASSERT_EQ(finished.size(), 3U);
    RandomStream random(20);
    int runs = 0;
    for (int killed = 0; killed < kills;) {
      std::filesystem::remove_all(folder / "run");
      std::int64_t kept = 0;
      std::map<std::string, std::string> seen;
      for (bool ended = false; !ended;) {
        const pid_t pid = start(ranks);
        int status = 0;
        ended = ends_within(pid, random.next_uniform() * longest_seconds, status);
        if (!ended) {
          killed += kill(pid, random) ? 1 : 0;
          status = wait(pid);
          ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        } else {
          ASSERT_EQ(status, 0) << read_text(folder / "log");
        }
        ASSERT_GE(steps_kept(), kept) << "steps were lost";
        kept = steps_kept();
        for (const auto& [task, bytes] : adapters("run")) seen[task] = bytes;
        for (const auto& [task, bytes] : seen) ASSERT_TRUE(adapters("run")[task] == bytes) << task;
      }
      ++runs;
      EXPECT_TRUE(adapters("run") == finished);
      EXPECT_EQ(metrics("run"), metrics("whole"));
    }
    RecordProperty("runs", runs);
  }
};

TEST_F(KilledRun, AHundredTimesAtRandomMomentsEndsAsIfItHadNotBeen) {
  kill_runs(kills(100), "1", 0.6, [](pid_t pid, RandomStream&) { return ::kill(pid, SIGKILL) == 0; });
}

TEST_F(KilledRun, AnyOfItsRanksMayBeKilled) {
  kill_runs(kills(6), "2", 1.5, [&](pid_t pid, RandomStream& random) {
    std::vector<pid_t> ranks = ranks_of_run();
    for (int wait = 0; ranks.empty() && wait < 200 && ::kill(pid, 0) == 0; ++wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      ranks = ranks_of_run();
    }
    return !ranks.empty() && ::kill(ranks[random.next_below(ranks.size())], SIGKILL) == 0;
  });
}

/// From another shell: how a run stands, that a task is to end, and what is no such wish.
TEST_F(KilledRun, OthersAskHowItStandsAndCancelTasks) {
  std::string text = read_text(folder / "workload.yaml");
  for (int task = 0; task < 3; ++task) {
    const std::string steps = "steps: " + std::to_string(30 + 15 * task) + "\n";
    text.replace(text.find(steps), steps.size(), "steps: " + std::to_string(task == 0 ? 150 : 300) + "\n");
  }
  write_text(folder / "workload.yaml", text);
  EXPECT_EQ(run_braid("status " + path("run")).status, 2);
  const pid_t pid = start("1");
  while (steps_kept() < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const Outcome running = run_braid("status --json " + path("run"));
  ASSERT_EQ(running.status, 0) << running.text;
  const Node status = parse_json(running.text, "status");
  EXPECT_EQ(status.string_at("state"), "running");
  EXPECT_GT(status.number_at("seconds_left"), 0);
  EXPECT_EQ(status.at("tasks").items.size(), 3U);

  EXPECT_NE(
      run_braid("task cancel " + path("run") + " nobody").text.find("the run has no task 'nobody'; give one of: "),
      std::string::npos);
  write_text(folder / "run" / "inbox" / "nobody.cancel", "");
  write_text(folder / "run" / "inbox" / "task9.yaml", "name: [");
  const Outcome cancelled = run_braid("task cancel " + path("run") + " task1");
  ASSERT_EQ(cancelled.status, 0) << cancelled.text;
  while (!std::filesystem::exists(folder / "run" / "adapters" / "task1" / "adapter_config.json") && ::kill(pid, 0) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(adapters("run").size(), 1U) << "the others go on";
  ::kill(pid, SIGKILL);
  wait(pid);
  const std::string killed = run_braid("status " + path("run")).text;
  EXPECT_NE(killed.find("killed; `braid train --resume` goes on with it"), std::string::npos) << killed;
  const auto before = adapters("run");
  ASSERT_EQ(wait(start("1")), 0) << read_text(folder / "log");
  const std::string ended = run_braid("status " + path("run")).text;
  EXPECT_NE(ended.find("finished\n"), std::string::npos) << ended;
  EXPECT_NE(ended.find(" cancelled "), std::string::npos) << ended;
  EXPECT_TRUE(adapters("run").at("task1") == before.at("task1"));
  EXPECT_EQ(metrics("run").contains("task0 150"), true);
  EXPECT_EQ(metrics("run").contains("task1 300"), false);
  const std::filesystem::path rejected = folder / "run" / "inbox" / "rejected";
  EXPECT_EQ(read_text(rejected / "nobody.cancel.reason"), "the run has no task nobody\n");
  EXPECT_NE(
      run_braid("status --json " + path("run")).text.find("\"refused\": [\n  \"nobody.cancel: the run has no task"),
      std::string::npos);
  EXPECT_NE(run_braid("status " + path("run")).text.find("refused nobody.cancel: the run has no task nobody\n"),
            std::string::npos);
  EXPECT_NE(read_text(rejected / "task9.yaml.reason").find("not valid YAML"), std::string::npos);
}

/// As schedulers do before they take a machine away.
TEST_F(KilledRun, ToldToTerminateItKeepsItsStateAndEndsWell) {
  for (const std::string ranks : {"1", "2"}) {
    std::filesystem::remove_all(folder / "run");
    std::filesystem::remove_all(folder / "whole");
    const Outcome whole =
        run_braid("train --quiet " + planning() + " --policy hf-peft --ranks " + ranks + " --out " + path("whole"));
    ASSERT_EQ(whole.status, 0) << whole.text;
    const pid_t pid = start(ranks);
    while (steps_kept() < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ::kill(pid, SIGTERM);
    ASSERT_EQ(wait(pid), 0) << read_text(folder / "log");
    EXPECT_LT(adapters("run").size() < 3 ? steps_kept() : 0, 135);
    EXPECT_NE(read_text(folder / "log").find("go on with `braid train --resume --out"), std::string::npos);
    ASSERT_EQ(wait(start(ranks)), 0) << read_text(folder / "log");
    EXPECT_TRUE(adapters("run") == adapters("whole"));
    EXPECT_EQ(metrics("run"), metrics("whole"));
  }
}

/// Whoever starts ranks and is killed takes them along, and two runs never share a folder.
TEST_F(KilledRun, NobodyGoesOnInAFolderWhereOthersAreAtWork) {
  const pid_t pid = start("2");
  while (steps_kept() < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const Outcome second = run_braid("train --quiet --resume --out " + path("run"));
  EXPECT_EQ(second.status, 2) << second.text;
  EXPECT_NE(second.text.find("another process is at work there"), std::string::npos) << second.text;
  ::kill(pid, SIGKILL);
  wait(pid);
  const SteadyClock::time_point began = SteadyClock::now();
  while (!ranks_of_run().empty() && seconds_since(began) < 20)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(ranks_of_run().empty()) << "ranks outlive the process that started them";
  EXPECT_EQ(wait(start("2")), 0) << read_text(folder / "log");
}

/// On a plan of other tasks and ranks those go on that are known, and what was told of the others stays.
TEST_F(KilledRun, GoesOnWithOtherTasksOnOtherRanks) {
  const std::string one = " --policy hf-peft --ranks 1 --out " + path("run");
  ASSERT_EQ(run_braid("train --quiet --checkpoint-steps 1 " + planning() + one).status, 0);
  std::string text = read_text(folder / "workload.yaml");
  text.replace(text.find("name: task1"), 11, "name: fresh");
  write_text(folder / "workload.yaml", text);
  expect_bad_input("train --resume --out " + path("run") + " --policy gpipe",
                   "--resume goes on by the run's own plan, which --policy does not change");
  const Outcome outcome =
      run_braid("train --resume --quiet " + planning() + " --policy megatron-pp --ranks 2 --out " + path("run"));
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("task1: is no longer a task of the run; it does not go on"), std::string::npos);
  EXPECT_NE(outcome.text.find("steps taken: task0 30, fresh 0, task2 60"), std::string::npos) << outcome.text;
  const auto told = metrics("run");
  EXPECT_EQ(told.size(), 30U + 45U + 45U + 60U);
  EXPECT_TRUE(told.contains("task1 45") && told.contains("fresh 45"));
  EXPECT_EQ(adapters("run").size(), 4U) << "those of a run before stay";
  const Node status = parse_json(run_braid("status --json " + path("run")).text, "status");
  for (const Node& task : status.at("tasks").sequence("tasks"))
    EXPECT_GT(task.number_at("loss"), 0) << "of a task that had finished, too";
}

TEST_F(KilledRun, OverwritingDeletesWhatARunWroteAlone) {
  const std::string run = " --policy hf-peft --ranks 1 --overwrite --out ";
  write_text(folder / "mine/adapters/w.bin", "not braid's");
  const Outcome foreign = run_braid("train --quiet " + planning() + run + path("mine"));
  EXPECT_EQ(foreign.status, 2);
  EXPECT_NE(foreign.text.find("mine/adapters: is of no run of braid's"), std::string::npos) << foreign.text;
  EXPECT_EQ(read_text(folder / "mine/adapters/w.bin"), "not braid's");

  ASSERT_EQ(run_braid("train --quiet " + planning() + run + path("run")).status, 0);
  std::filesystem::copy(folder / "data1.jsonl", folder / "run/adapters/data1.jsonl");
  std::string workload = read_text(folder / "workload.yaml");
  workload.replace(workload.find("data1.jsonl"), 11, "run/adapters/data1.jsonl");
  write_text(folder / "inside.yaml", workload);
  std::string inside = planning();
  inside.replace(inside.find("workload.yaml"), 13, "inside.yaml");
  const Outcome own = run_braid("train --quiet " + inside + run + path("run"));
  EXPECT_EQ(own.status, 2);
  EXPECT_NE(own.text.find("data1.jsonl: is read by this run, and --overwrite would delete it"), std::string::npos)
      << own.text;
  EXPECT_TRUE(std::filesystem::exists(folder / "run/adapters/data1.jsonl"));
  EXPECT_EQ(run_braid("train --quiet " + planning() + run + path("run")).status, 0) << "what it reads lies elsewhere";
}

TEST_F(KilledRun, WhatCannotBeGoneOnWithIsRefused) {
  const auto refused = [&](const std::string& flags, const std::string& words) {
    const Outcome outcome = run_braid("train --quiet " + flags);
    EXPECT_EQ(outcome.status, 2) << outcome.text;
    EXPECT_NE(outcome.text.find(words), std::string::npos) << outcome.text;
  };
  refused("--resume --out " + path("nothing"), "holds no run to resume");
  ASSERT_EQ(run_braid("train --quiet " + planning() + " --policy hf-peft --ranks 1 --out " + path("run")).status, 0);
  refused("--resume --overwrite --out " + path("run"), "--overwrite gives up the run that --resume goes on with");
  refused("--resume --checkpoint-minutes -1 --out " + path("run"), "are 0 or more");
  // A dataset that changed meanwhile.
  write_text(folder / "data1.jsonl", dataset(15, 16));
  refused("--resume --out " + path("run"), "data1.jsonl: has changed since the plan was made");
  refused("--resume " + planning() + " --policy hf-peft --ranks 1 --out " + path("run"),
          "the dataset of task task1 has changed since");
}

}  // namespace
}  // namespace braid::cli
