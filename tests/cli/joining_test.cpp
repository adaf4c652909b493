#include <cstring>

#include "base/random.h"
#include "cli/background.h"

/// Tasks that come to a run and leave it while it goes, or between two of its processes: none of them notices another.
namespace braid::cli {
namespace {

using testing::Outcome;
using testing::read_text;
using testing::run_braid;
using testing::write_text;

class JoinedRun : public testing::BackgroundRun {
 protected:
  void SetUp() override {
    BackgroundRun::SetUp();
    write_text(folder / "late.yaml",
               "name: late\ndataset: data1.jsonl\nmax_length: 32\nadapter: {r: 6}\n"
               "global_batch_size: 6\nsteps: 20\noptimizer: {lr: 1e-2}\nseed: 9\n");
  }

  void set_steps(std::int64_t steps) const {
    std::string text = workload();
    for (int task = 0; task < 3; ++task) {
      const std::string written = "steps: " + std::to_string(4 + task) + "\n";
      text.replace(text.find(written), written.size(), "steps: " + std::to_string(steps) + "\n");
    }
    write_text(folder / "workload.yaml", text);
  }
  std::string by(const std::string& policy, const std::string& ranks) const {
    return planning() + " --policy " + policy + " --ranks " + ranks;
  }
  void train(const std::string& words) const {
    const Outcome outcome = run_braid("train --quiet " + words);
    ASSERT_EQ(outcome.status, 0) << outcome.text;
  }
  /// The late task's metrics and adapter, where it runs by itself.
  void train_late_alone(const std::string& policy, const std::string& ranks) const {
    std::string text = "backbone: " BRAID_SOURCE_DIR "/tests/golden/llama\ntasks:\n  - ";
    for (const char c : read_text(folder / "late.yaml")) text += c == '\n' ? "\n    " : std::string(1, c);
    write_text(folder / "alone.yaml", text);
    train("--workload " + path("alone.yaml") + " --profile " + path("profile.json") + " --foreign-profile --policy " +
          policy + " --ranks " + ranks + " --out " + path("alone"));
  }

  /// "" where the run has no such task, or is not there yet.
  std::string state_of(const std::string& task) const {
    if (!std::filesystem::exists(folder / "run" / "status.json")) return "";
    const Node status = parse_json(run_braid("status --json " + path("run")).text, "status");
    for (const Node& one : status.at("tasks").sequence("tasks"))
      if (one.string_at("task") == task) return one.string_at("state");
    return "";
  }
  bool comes_to(const std::string& task, const std::string& state) const {
    for (const SteadyClock::time_point began = SteadyClock::now(); seconds_since(began) < 60;) {
      if (state_of(task) == state) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ADD_FAILURE() << task << " is " << state_of(task) << ", not " << state << "\n" << read_text(folder / "log");
    return false;
  }
  void ask(const std::string& words) const {
    const Outcome outcome = run_braid("task " + words);
    ASSERT_EQ(outcome.status, 0) << outcome.text;
  }
  static std::map<std::string, std::string> of_task(const std::string& task,
                                                    const std::map<std::string, std::string>& metrics) {
    std::map<std::string, std::string> some;
    for (const auto& [step, told] : metrics)
      if (step.starts_with(task + " ")) some[step] = told;
    return some;
  }
};

/// The task that joins and those that were there take the steps that they take without each other.
TEST_F(JoinedRun, TasksJoinPauseAndLeaveWhileItRuns) {
  for (const std::string ranks : {"1", "2"}) {
    set_steps(100000);
    for (const char* old : {"run", "alone", "whole"}) std::filesystem::remove_all(folder / old);
    train_late_alone("hf-peft", ranks);
    const pid_t pid = start_training(by("hf-peft", ranks));
    ASSERT_TRUE(comes_to("task1", "running"));
    write_text(folder / "run" / "inbox" / "bad.yaml", "name: bad\ndataset: none.jsonl\nmax_length: 8\n");
    ask("add " + path("run") + " " + path("late.yaml"));
    ASSERT_TRUE(comes_to("late", "finished"));
    ask("pause " + path("run") + " task1");
    ASSERT_TRUE(comes_to("task1", "paused"));
    EXPECT_TRUE(adapters("run").contains("task1")) << "of what pauses the adapter is there";
    const auto paused = of_task("task1", metrics("run"));
    ask("resume " + path("run") + " task1");
    ASSERT_TRUE(comes_to("task1", "running"));
    for (const char* task : {"task0", "task1", "task2"}) ask("cancel " + path("run") + " " + task);
    ASSERT_EQ(wait(pid), 0) << read_text(folder / "log");

    EXPECT_EQ(of_task("late", metrics("run")), of_task("late", metrics("alone"))) << ranks;
    EXPECT_TRUE(adapters("run").at("late") == adapters("alone").at("late")) << ranks;
    // As many steps of the others as they took here.
    const auto told = metrics("run");
    std::string text = workload();
    for (int task = 0; task < 3; ++task) {
      const std::string written = "steps: " + std::to_string(4 + task) + "\n";
      const std::size_t taken = of_task("task" + std::to_string(task), told).size();
      EXPECT_GT(taken, 0U);
      text.replace(text.find(written), written.size(), "steps: " + std::to_string(taken) + "\n");
    }
    EXPECT_GT(of_task("task1", told).size(), paused.size());
    write_text(folder / "workload.yaml", text);
    train(by("hf-peft", ranks) + " --out " + path("whole"));
    const auto whole = adapters("whole");
    for (int task = 0; task < 3; ++task) {
      const std::string name = "task" + std::to_string(task);
      EXPECT_EQ(of_task(name, told), of_task(name, metrics("whole"))) << ranks;
      EXPECT_TRUE(adapters("run").at(name) == whole.at(name)) << ranks << " " << name;
    }
    EXPECT_NE(read_text(folder / "run" / "inbox" / "rejected" / "bad.yaml.reason").find("no such dataset"),
              std::string::npos);
    std::istringstream changes(read_text(folder / "run" / "changes.jsonl"));
    int count = 0;
    for (std::string line; std::getline(changes, line); ++count) {
      const Node change = parse_json(line, "changes.jsonl");
      EXPECT_GT(change.number_at("measured_seconds"), 0);
      EXPECT_GT(change.number_at("predicted_seconds"), 0);
    }
    EXPECT_EQ(count, 3);
  }
}

/// Also on a stream, which drains at the change, over stages, and by a policy that puts tasks into one microbatch.
TEST_F(JoinedRun, AnyPolicyTakesTasksIn) {
  set_steps(100000);
  for (const std::string policy : {"mlora", "muxtune", "lorafusion"}) {
    for (const char* old : {"run", "alone"}) std::filesystem::remove_all(folder / old);
    train_late_alone(policy, "2");
    const pid_t pid = start_training(by(policy, "2"));
    ASSERT_TRUE(comes_to("task1", "running")) << policy;
    ask("add " + path("run") + " " + path("late.yaml"));
    ASSERT_TRUE(comes_to("late", "finished")) << policy;
    ::kill(pid, SIGTERM);
    ASSERT_EQ(wait(pid), 0) << read_text(folder / "log");
    const auto here = of_task("late", metrics("run")), alone = of_task("late", metrics("alone"));
    ASSERT_EQ(here.size(), 20U) << policy;
    for (const auto& [step, told] : here)
      EXPECT_NEAR(std::stod(told) / std::stod(alone.at(step)), 1, 1e-4) << policy << " " << step;
  }
}

/// What is asked of a run that nobody works at is done when it is gone on with.
TEST_F(JoinedRun, WhatIsAskedMeanwhileIsDoneWhenItGoesOn) {
  set_steps(6);
  train(by("hf-peft", "1") + " --out " + path("run"));
  const auto before = adapters("run");
  train_late_alone("hf-peft", "1");
  ask("add " + path("run") + " " + path("late.yaml"));
  train("--resume --out " + path("run"));
  auto after = adapters("run");
  EXPECT_TRUE(after.at("late") == adapters("alone").at("late"));
  after.erase("late");
  EXPECT_TRUE(after == before);
  EXPECT_EQ(metrics("run").size(), 3 * 6U + 20U);
  EXPECT_EQ(state_of("task0"), "finished");
  EXPECT_EQ(state_of("late"), "finished");
  // The same name is taken; a task that has ended is asked for nothing.
  const auto refused = [&](const std::string& words, const std::string& why) {
    const Outcome outcome = run_braid("task " + words);
    EXPECT_EQ(outcome.status, 2) << outcome.text;
    EXPECT_NE(outcome.text.find(why), std::string::npos) << outcome.text;
  };
  refused("add " + path("run") + " " + path("late.yaml"), "the run has a task 'late' already; give it another name");
  refused("pause " + path("run") + " late", "task late is finished already");
  refused("resume " + path("run") + " nobody", "the run has no task 'nobody'; give one of: task0, task1, task2, late");
  refused("priority " + path("run") + " late", "the number is missing");
  refused("stop " + path("run") + " late", "unknown; give one of: add, list, cancel, pause, resume, priority");
  EXPECT_EQ(run_braid("task list " + path("run")).text, run_braid("status " + path("run")).text);
}

/// A plan that a run went over to is of that run alone.
TEST_F(JoinedRun, APlanOfARunThatWasUnderWayIsNotBegunWith) {
  set_steps(6);
  train(by("hf-peft", "1") + " --out " + path("run"));
  ask("add " + path("run") + " " + path("late.yaml"));
  train("--resume --out " + path("run"));
  const Outcome outcome = run_braid("train --quiet --plan " + path("run/plan.json") + " --out " + path("other"));
  EXPECT_EQ(outcome.status, 2) << outcome.text;
  EXPECT_NE(outcome.text.find("goes on with a run that was under way"), std::string::npos) << outcome.text;
}

/// A run without room for its adapters goes on to its end, says what is missing, and once there is room goes on from
/// what it kept.
TEST_F(JoinedRun, AFullDiskLosesNothingThatWasKept) {
  set_steps(6);
  std::string text = read_text(folder / "workload.yaml");
  costmodel::AdapterShape large;
  large.rank = 64;
  for (const auto module : {costmodel::Module::q, costmodel::Module::k, costmodel::Module::v, costmodel::Module::o})
    large.targets[static_cast<std::size_t>(module)] = true;
  for (const char* rank : {"r: 2}", "r: 4, dropout: 0.1}", "r: 6}"})
    text.replace(text.find(rank), std::strlen(rank), "r: 64}");
  write_text(folder / "workload.yaml", text);
  write_text(folder / "profile.json", costmodel::to_json(testing::made_up_profile(
                                          costmodel::read_backbone(BRAID_SOURCE_DIR "/tests/golden/llama"), {large})));
  train(by("hf-peft", "1") + " --out " + path("whole"));
  // Files of up to 128 blocks of 1,024 bytes: plan.json is smaller, states and adapters are not.
  const Outcome full =
      run_shell("bash -c \"trap '' XFSZ; ulimit -f 128; " BRAID_PROGRAM " train --quiet --checkpoint-steps 2 " +
                by("hf-peft", "1") + " --out " + path("run") + "\"");
  EXPECT_EQ(full.status, 1) << full.text;
  EXPECT_NE(full.text.find("the run goes on, and its state is kept again later: make room"), std::string::npos)
      << full.text;
  EXPECT_NE(full.text.find("task0: its adapter could not be written; make room and go on"), std::string::npos)
      << full.text;
  EXPECT_EQ(metrics("run").size(), 18U);
  EXPECT_TRUE(adapters("run").empty());
  train("--resume --out " + path("run"));
  EXPECT_TRUE(adapters("run") == adapters("whole"));
  EXPECT_EQ(metrics("run"), metrics("whole"));
}

/// Killed at any moment around joining, it ends as if nobody had killed it.
TEST_F(JoinedRun, KilledWhileATaskJoinsNothingIsLost) {
  set_steps(40);
  train_late_alone("hf-peft", "1");
  train(by("hf-peft", "1") + " --out " + path("whole"));
  RandomStream random(4);
  for (int run = 0; run < 4; ++run) {
    std::filesystem::remove_all(folder / "run");
    int status = 0;
    pid_t pid = start_training("--checkpoint-steps 2 " + by("hf-peft", "1"));
    while (!std::filesystem::exists(folder / "run" / "status.json")) std::this_thread::yield();
    ask("add " + path("run") + " " + path("late.yaml"));
    for (int kills = 0; kills < 5 && !ends_within(pid, 0.4 * random.next_uniform(), status); ++kills) {
      ::kill(pid, SIGKILL);
      wait(pid);
      pid = start_training("--resume --checkpoint-steps 2");
    }
    if (::kill(pid, 0) == 0) status = wait(pid);
    ASSERT_EQ(status, 0) << read_text(folder / "log");
    auto expected = adapters("whole");
    expected["late"] = adapters("alone").at("late");
    EXPECT_TRUE(adapters("run") == expected);
    EXPECT_EQ(of_task("late", metrics("run")), metrics("alone"));
  }
}

TEST_F(JoinedRun, ItMayStayAndWaitForMore) {
  set_steps(3);
  for (const std::string ranks : {"1", "2"}) {
    std::filesystem::remove_all(folder / "run");
    const pid_t pid = start_training("--stay " + by("hf-peft", ranks));
    ASSERT_TRUE(comes_to("task2", "finished"));
    ask("add " + path("run") + " " + path("late.yaml"));
    ASSERT_TRUE(comes_to("late", "finished"));
    ::kill(pid, SIGTERM);
    EXPECT_EQ(wait(pid), 0) << read_text(folder / "log");
    EXPECT_EQ(adapters("run").size(), 4U);
  }
}

}  // namespace
}  // namespace braid::cli
