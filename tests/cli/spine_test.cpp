#include <cmath>
#include <map>

#include "base/node.h"
#include "cli/workspace.h"
#include "planner/plan/plan.h"
#include "workload/workload.h"

namespace braid::cli {
namespace {

using Spine = testing::Workspace;
using testing::Outcome;
using testing::read_text;
using testing::run_braid;

/// Per task, its lines of metrics.jsonl less the seconds, which no two runs share.
std::map<std::string, std::vector<std::string>> metrics_of(const std::filesystem::path& folder) {
  std::map<std::string, std::vector<std::string>> lines;
  std::istringstream text(read_text(folder / "metrics.jsonl"));
  for (std::string line; std::getline(text, line);) {
    const Node node = parse_json(line, "metrics.jsonl");
    lines[node.string_at("task")].push_back(line.substr(0, line.find(",\"seconds\"")));
  }
  return lines;
}

/// A task's adapter, as a run wrote it.
std::string adapter_of(const std::filesystem::path& run, const std::string& task) {
  const std::string bytes = read_text(run / "adapters" / task / "adapter_model.safetensors");
  EXPECT_FALSE(bytes.empty()) << run << " " << task;
  return bytes;
}

double loss_of(const std::string& line) {
  return parse_json(line + "}", "line").number_at("loss");
}

TEST_F(Spine, TwoPlansOfTheSameInputAreTheSameBytesSaveForMeta) {
  for (const char* threads : {"1", "2"}) {
    ASSERT_EQ(run_braid("plan " + planning() + " --ranks 2 --threads " + threads + " --out " +
                        path(std::string("plan") + threads))
                  .status,
              0);
  }
  const auto without_meta = [&](const std::string& name) {
    const std::string text = read_text(folder / name);
    return text.substr(0, text.find("\"meta\": {\n  \"planning_seconds\""));
  };
  EXPECT_EQ(without_meta("plan1"), without_meta("plan2"));
}

TEST_F(Spine, GpusThatNobodyHoldsArePlannedFor) {
  testing::write_text(folder / "cluster.yaml", "gpu: a40\nnodes: 1\ngpus_per_node: 2\nintra_node: nvlink\n");
  const std::string plan = path("gpu.json");
  const Outcome planned = run_braid("plan --workload " + path("workload.yaml") + " --cluster " + path("cluster.yaml") +
                                    " --policy megatron-pp --out " + plan);
  ASSERT_EQ(planned.status, 0) << planned.text;
  const Node predicted = read_json(plan).at("predicted");
  EXPECT_GT(predicted.number_at("step_seconds"), 0);
  EXPECT_NEAR(predicted.number_at("extrapolated_share"), 1, 1e-9) << "nothing of it was measured";
  EXPECT_GT(predicted.at("peak_memory_bytes").items[0].as_number("bytes"), 4e8) << "the runtime's own";
  EXPECT_EQ(run_braid("simulate --plan " + plan).status, 0);
  for (const std::string gpu : {"a40", "h100"})
    ASSERT_EQ(run_braid("profile --analytic " + gpu + " --out " + path(gpu + ".json")).status, 0);
  const Outcome checked = run_braid("profile --check " + path("a40.json") + " " + path("h100.json"));
  EXPECT_EQ(checked.status, 0);
  EXPECT_NE(checked.text.find("furthest apart"), std::string::npos) << checked.text;
}

TEST_F(Spine, HowAGpuIsRunIsPlannedForAndSaid) {
  const auto predicted = [&](const std::string& flags, const std::string& said, const std::string& options = "") {
    const std::string profile = path("gpu_profile.json"), plan = path("gpu.json");
    EXPECT_EQ(run_braid("profile --analytic a40 " + flags + " --overwrite --out " + profile).status, 0);
    testing::write_text(folder / "cluster.yaml", "gpu: gpu_profile.json\nnodes: 1\ngpus_per_node: 1\n");
    const Outcome planned =
        run_braid("plan --workload " + path("workload.yaml") + " --cluster " + path("cluster.yaml") +
                  " --policy megatron-pp" + options + " --overwrite --out " + plan);
    EXPECT_EQ(planned.status, 0) << planned.text;
    EXPECT_NE(planned.text.find("\n  on a40, by its datasheet" + said + "\n"), std::string::npos) << planned.text;
    const Node prediction = read_json(plan).at("predicted");
    return std::pair(prediction.number_at("step_seconds"),
                     prediction.at("peak_memory_bytes").items[0].as_number("bytes"));
  };
  const auto [seconds, bytes] = predicted("", "");
  const auto [eager_seconds, eager_bytes] = predicted("--attention eager", ", eager attention");
  EXPECT_GT(eager_seconds, seconds);
  EXPECT_GT(eager_bytes, bytes);
  const auto [again_seconds, again_bytes] = predicted("", "", ":recompute=full");
  EXPECT_GT(again_seconds, seconds);
  EXPECT_LT(again_bytes, bytes);
}

TEST_F(Spine, SimulatingAPlanGivesWhatThePlanPredicted) {
  for (const std::string policy :
       {"hf-peft", "hf-peft:resident=false", "megatron-pp", "gpipe:pad_to=none", "sl-peft", "mlora", "muxtune"}) {
    const std::string plan = path("plan.json");
    ASSERT_EQ(run_braid("plan " + planning() + " --ranks 2 --overwrite --policy " + policy + " --out " + plan).status,
              0);
    const Outcome simulated =
        run_braid("simulate --json --plan " + plan + " --timeline-out " + path("trace.json") + " --overwrite");
    ASSERT_EQ(simulated.status, 0) << simulated.text;
    const Node predicted = parse_json(simulated.text, "stdout"), promised = read_json(plan).at("predicted");
    EXPECT_EQ(predicted.string_at("step_seconds"), promised.string_at("step_seconds"));
    EXPECT_GE(predicted.number_at("tokens_per_second"), predicted.number_at("data_tokens_per_second"));
    EXPECT_GE(predicted.number_at("effective_tokens_per_second"), predicted.number_at("data_tokens_per_second"));
    EXPECT_GE(promised.number_at("step_seconds"), read_json(plan).at("lower_bound").number_at("step_seconds"));
    EXPECT_GT(read_json(folder / "trace.json").at("traceEvents").items.size(), 10U);
  }
}

TEST_F(Spine, ReferenceKernelsLearnTheQuickStartAsTheCpusDo) {
  const std::filesystem::path example = folder / "quickstart";
  ASSERT_EQ(run_braid("init " + example.string()).status, 0);
  // Two steps of every task: these kernels are slow.
  std::string text = read_text(example / "workload.yaml");
  for (std::size_t at = 0; (at = text.find("    steps: ", at)) != std::string::npos;)
    text.replace(at, text.find('\n', at) - at, "    steps: 2"), ++at;
  testing::write_text(example / "workload.yaml", text);
  const workload::Workload quickstart = workload::read_workload(example / "workload.yaml");
  std::vector<costmodel::AdapterShape> adapters;
  for (const workload::Task& task : quickstart.tasks) adapters.push_back(task.adapter);
  testing::write_text(folder / "profile.json",
                      costmodel::to_json(testing::made_up_profile(quickstart.backbone, adapters)));
  for (const std::string backend : {"cpu", "reference"}) {
    const Outcome outcome =
        run_braid("train --quiet --ranks 2 --workload " + (example / "workload.yaml").string() + " --profile " +
                  path("profile.json") + " --foreign-profile --backend " + backend + " --out " + path(backend));
    ASSERT_EQ(outcome.status, 0) << outcome.text;
  }
  const auto by_cpu = metrics_of(folder / "cpu"), by_reference = metrics_of(folder / "reference");
  ASSERT_EQ(by_cpu.size(), 4U);
  for (const auto& [task, lines] : by_cpu) {
    ASSERT_EQ(lines.size(), 2U);
    for (std::size_t i = 0; i < lines.size(); ++i)
      EXPECT_NEAR(loss_of(by_reference.at(task).at(i)) / loss_of(lines[i]), 1, 1e-5) << task;
  }
  const auto on = [&](const std::string& backend) {
    return run_braid("train --workload " + (example / "workload.yaml").string() + " --backend " + backend + " --out " +
                     path("x"));
  };
  EXPECT_EQ(on("gpu").status, 2);
  // Without a GPU nothing is planned or measured, and it is said what is missing.
  if (std::filesystem::exists("/dev/nvidia0")) return;
  const Outcome without = on("cuda");
  EXPECT_NE(without.status, 0);
  EXPECT_TRUE(contains(without.text, "nvidia-smi") || contains(without.text, "knows no GPU")) << without.text;
  EXPECT_FALSE(std::filesystem::exists(path("x")));
}

TEST_F(Spine, TwoStagesGiveTheLossesAndAdaptersOfOneRankToTheByte) {
  for (const std::string policy :
       {"gpipe", "megatron-pp:pad_to=none", "sl-peft", "hf-peft", "mlora:batch=off", "mlora:batch=off:mode=gpipe",
        "muxtune:fusion=off", "muxtune:fusion=off:chunk=16", "muxtune:fusion=off:alignment=packed:pad_to=none"}) {
    for (const char* stages : {"1", "2"}) {
      const Outcome outcome =
          run_braid("train " + planning() + " --quiet --overwrite --microbatches 3 --ranks " + stages + " --pp " +
                    stages + " --policy " + policy + " --out " + path(std::string("out") + stages));
      ASSERT_EQ(outcome.status, 0) << outcome.text;
    }
    EXPECT_EQ(metrics_of(folder / "out1"), metrics_of(folder / "out2")) << policy;
    for (const char* task : {"task0", "task1", "task2"}) {
      for (const char* file : {"adapter_model.safetensors", "adapter_config.json"}) {
        const std::string one = read_text(folder / "out1/adapters" / task / file);
        EXPECT_FALSE(one.empty());
        EXPECT_EQ(one, read_text(folder / "out2/adapters" / task / file)) << policy << " " << task;
      }
    }
  }
}

TEST_F(Spine, LayersSplitAsAskedGiveTheLossesAndAdaptersOfOneRankToTheByte) {
  ASSERT_EQ(run_braid("init " + path("example") + " --quiet").status, 0);
  use_backbone(folder / "example/models/tiny");
  std::map<std::string, std::vector<std::string>> first;
  for (const std::string split : {"4", "3,1", "1,3"}) {
    const std::string ranks = split == "4" ? "1" : "2";
    const Outcome outcome =
        run_braid("train " + planning() + " --quiet --overwrite --microbatches 2 --ranks " + ranks + " --layers " +
                  split + " --policy muxtune:fusion=off --out " + path("out" + ranks));
    ASSERT_EQ(outcome.status, 0) << outcome.text;
    if (split == "4") first = metrics_of(folder / "out1");
    EXPECT_EQ(metrics_of(folder / ("out" + ranks)), first) << split;
    for (const char* task : {"task0", "task1", "task2"})
      EXPECT_EQ(adapter_of(folder / ("out" + ranks), task), adapter_of(folder / "out1", task)) << split;
  }
}

TEST_F(Spine, TrainingLowersEveryLoss) {
  std::string text = workload();
  for (std::size_t place = 0; (place = text.find("steps: ", place)) != std::string::npos; ++place)
    text.replace(place, 8, "steps: 30");
  testing::write_text(folder / "workload.yaml", text);
  const auto told = run_braid("train " + planning() + " --ranks 1 --policy sl-peft:pad_to=none --out " + path("out"));
  ASSERT_EQ(told.status, 0) << told.text;
  EXPECT_NE(told.text.find("step   30/30"), std::string::npos) << told.text;
  EXPECT_EQ(told.text.find("0.0 us left"), std::string::npos) << told.text;
  for (const auto& [task, lines] : metrics_of(folder / "out")) {
    ASSERT_EQ(lines.size(), 30U);
    EXPECT_LT(loss_of(lines.back()), 0.8 * loss_of(lines.front())) << task;
  }
}

TEST_F(Spine, PoliciesAgreeOnWhatEachTaskLearns) {
  std::map<std::string, std::vector<std::string>> first;
  for (const std::string policy :
       {"hf-peft", "gpipe:pad_to=none", "sl-peft", "mlora", "muxtune:pad_to=none", "muxtune:chunk=16",
        "muxtune:chunk=16:padding=skipped:orchestration=off", "muxtune:alignment=zero", "muxtune:alignment=packed"}) {
    ASSERT_EQ(
        run_braid("train " + planning() + " --quiet --overwrite --ranks 1 --policy " + policy + " --out " + path("out"))
            .status,
        0);
    const auto metrics = metrics_of(folder / "out");
    if (first.empty()) first = metrics;
    for (const auto& [task, lines] : first) {
      ASSERT_EQ(metrics.at(task).size(), lines.size());
      for (std::size_t i = 0; i < lines.size(); ++i)
        EXPECT_NEAR(loss_of(metrics.at(task)[i]), loss_of(lines[i]), 1e-4 * loss_of(lines[i])) << policy << " " << task;
    }
  }
}

TEST_F(Spine, SchedulesOfTheSameMicrobatchesGiveTheSameLossesAndAdaptersToTheByte) {
  // Windows of eight steps of mlora: two for task0 and task1, three for task2.
  std::string text = workload();
  for (int task = 0; task < 3; ++task)
    text.replace(text.find("steps: " + std::to_string(4 + task)), 8, "steps: " + std::to_string(11 + 3 * task));
  testing::write_text(folder / "workload.yaml", text);
  const auto train = [&](const std::string& policy, const std::string& ranks, const std::string& out) {
    const Outcome outcome = run_braid("train " + planning() + " --quiet --overwrite --microbatches 2 --ranks " + ranks +
                                      " --policy " + policy + " --out " + path(out));
    EXPECT_EQ(outcome.status, 0) << outcome.text;
  };
  for (const auto& [plain, others] : std::map<std::string, std::vector<std::string>>{
           {"megatron-pp:pad_to=none", {"mlora:batch=off:pad_to=none", "mlora:batch=off:mode=gpipe:pad_to=none"}},
           {"megatron-pp:pad_to=max_length", {"mlora:batch=off", "muxtune:fusion=off:alignment=zero"}}}) {
    train(plain, "1", "plain");
    for (const std::string& policy : others) {
      for (const char* ranks : {"1", "2"}) {
        train(policy, ranks, "other");
        EXPECT_EQ(metrics_of(folder / "plain"), metrics_of(folder / "other")) << policy << " on " << ranks;
        for (const char* task : {"task0", "task1", "task2"}) {
          EXPECT_EQ(adapter_of(folder / "plain", task), adapter_of(folder / "other", task)) << policy << " " << task;
        }
      }
    }
  }
}

TEST_F(Spine, HTasksOfOneBucketGoThroughTwoStagesInOneInstruction) {
  const Outcome planned = run_braid("plan " + planning() + " --ranks 2 --pp 2 --microbatches 2 --policy " +
                                    "muxtune:fusion=off:alignment=zero --out " + path("apart.json"));
  ASSERT_EQ(planned.status, 0) << planned.text;
  planner::Plan plan = planner::read_plan(folder / "apart.json");
  plan.fixed.buckets = {{0, 2}, {1}};
  testing::write_text(folder / "together.json", planner::to_json(plan));
  std::map<std::string, int> forwards;
  for (const std::string name : {"apart", "together"}) {
    const Outcome outcome = run_braid("train --quiet --plan " + path(name + ".json") + " --out " + path(name));
    ASSERT_EQ(outcome.status, 0) << outcome.text;
    const Node timeline = read_json(folder / name / "timeline.json");
    for (const Node& event : timeline.at("traceEvents").items)
      forwards[name] += event.string_at("name").starts_with("Forward") ? 1 : 0;
  }
  EXPECT_LT(forwards["together"], forwards["apart"]);
  EXPECT_EQ(metrics_of(folder / "apart"), metrics_of(folder / "together"));
  for (const char* task : {"task0", "task1", "task2"}) {
    EXPECT_EQ(adapter_of(folder / "apart", task), adapter_of(folder / "together", task)) << task;
  }
}

TEST_F(Spine, ADivergingTaskStopsAndNoOther) {
  const std::string steady =
      "train " + planning() + " --quiet --overwrite --ranks 1 --microbatches 2 --policy sl-peft --out ";
  ASSERT_EQ(run_braid(steady + path("good")).status, 0);
  std::string text = workload();
  const std::size_t second = text.find("lr: 1e-2", text.find("task1"));
  text.replace(second, 8, "lr: 1e38");
  testing::write_text(folder / "workload.yaml", text);
  const Outcome outcome = run_braid(steady + path("bad"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("task1: the loss of step"), std::string::npos) << outcome.text;
  EXPECT_FALSE(std::filesystem::exists(folder / "bad/adapters/task1"));
  const auto good = metrics_of(folder / "good"), bad = metrics_of(folder / "bad");
  EXPECT_LT(bad.at("task1").size(), good.at("task1").size());
  for (const char* task : {"task0", "task2"}) {
    ASSERT_EQ(bad.at(task).size(), good.at(task).size());
    for (std::size_t i = 0; i < good.at(task).size(); ++i)
      EXPECT_NEAR(loss_of(bad.at(task)[i]), loss_of(good.at(task)[i]), 1e-5 * loss_of(good.at(task)[i]));
    EXPECT_TRUE(std::filesystem::exists(folder / "bad/adapters" / task / "adapter_model.safetensors"));
  }
}

TEST_F(Spine, ATaskThatDivergesInAWindowOfManyStepsLeavesTheOthersBytesOnTwoStages) {
  const std::string train =
      "train " + planning() + " --quiet --ranks 2 --pp 2 --microbatches 2 --policy mlora:batch=off --out ";
  ASSERT_EQ(run_braid(train + path("good")).status, 0);
  std::string text = workload();
  text.replace(text.find("lr: 1e-2", text.find("task1")), 8, "lr: 1e38");
  testing::write_text(folder / "workload.yaml", text);
  const Outcome outcome = run_braid(train + path("bad"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("task1: the loss of step 2 is not finite"), std::string::npos) << outcome.text;
  const auto good = metrics_of(folder / "good"), bad = metrics_of(folder / "bad");
  EXPECT_EQ(bad.at("task1").size(), 2U);
  EXPECT_FALSE(std::filesystem::exists(folder / "bad/adapters/task1"));
  for (const char* task : {"task0", "task2"}) {
    EXPECT_EQ(good.at(task), bad.at(task));
    EXPECT_EQ(adapter_of(folder / "good", task), adapter_of(folder / "bad", task)) << task;
  }
}

TEST_F(Spine, CtrlCFinishesTheStepWritesTheAdaptersAndExits130) {
  std::string text = workload();
  for (std::size_t place = 0; (place = text.find("steps: ", place)) != std::string::npos; ++place)
    text.replace(place, 8, "steps: 90000");
  testing::write_text(folder / "workload.yaml", text);
  for (const char* ranks : {"1", "2"}) {
    const std::string out = path(std::string("out") + ranks);
    // Stops a run that would take an hour, once its first step is logged.
    const std::string command =
        std::string(BRAID_PROGRAM) + " train " + planning() + " --quiet --ranks " + ranks + " --out " + out +
        " & child=$!; for i in $(seq 300); do [ -s " + out +
        "/metrics.jsonl ] && break; sleep 0.1; done; kill -INT $child; wait $child; echo status $?";
    const Outcome outcome = testing::run_shell("bash -c 'set -m; " + command + "'");
    EXPECT_NE(outcome.text.find("status 130"), std::string::npos) << outcome.text;
    EXPECT_TRUE(std::filesystem::exists(out + "/adapters/task0/adapter_model.safetensors"));
    EXPECT_TRUE(std::filesystem::exists(out + "/timeline.json"));
  }
}

/// Whatever a policy makes of four ranks, tasks learn what they learn one after another on one.
TEST_F(Spine, EveryPolicyTrainsOnFourRanksToTheLossesOfOne) {
  const auto train = [&](const std::string& ranks, const std::string& policy, const std::string& out) {
    const Outcome outcome = run_braid("train " + planning() + " --quiet --overwrite --ranks " + ranks + " --policy " +
                                      policy + " --out " + path(out));
    EXPECT_EQ(outcome.status, 0) << policy << ": " << outcome.text;
  };
  train("1", "hf-peft", "alone");
  const auto alone = metrics_of(folder / "alone");
  for (const std::string policy :
       {"hf-peft", "nemo", "nemo:schedule=1f1b", "megatron-fsdp", "megatron-pp", "gpipe", "sl-peft", "mlora", "muxtune",
        "task-fused", "task-sequential", "lobra", "lobra:rows=bins", "lobra-sequential", "lorafusion", "braid"}) {
    train("4", policy, "together");
    const auto together = metrics_of(folder / "together");
    ASSERT_EQ(together.size(), alone.size()) << policy;
    for (const auto& [task, lines] : alone) {
      ASSERT_EQ(together.at(task).size(), lines.size()) << policy << " " << task;
      for (std::size_t i = 0; i < lines.size(); ++i)
        EXPECT_NEAR(loss_of(together.at(task)[i]) / loss_of(lines[i]), 1, 3e-5) << policy << " " << task << " " << i;
    }
  }
}

TEST_F(Spine, ValidateComparesEveryKindStageStepAndMemory) {
  for (const char* ranks : {"1", "2"}) {
    const Outcome outcome =
        run_braid("validate " + planning() + " --quiet --overwrite --windows 2 --operators --policy sl-peft --ranks " +
                  ranks + " --pp " + ranks + " --out " + path("comparison.json"));
    ASSERT_EQ(outcome.status, 0) << outcome.text;
    // Ranks under mpirun have a pseudo-terminal, and what they print goes into a pipe here.
    EXPECT_EQ(outcome.text.find('\x1b'), std::string::npos) << outcome.text;
    const Node comparison = read_json(folder / "comparison.json");
    EXPECT_EQ(comparison.integer_at("windows"), 2);
    EXPECT_EQ(std::to_string(comparison.at("stages").items.size()), ranks);
    EXPECT_EQ(std::to_string(comparison.at("peak_memory_bytes").items.size()), ranks);
    const Node &step = comparison.at("step_seconds"), &at_pace = comparison.at("step_seconds_at_profiled_pace"),
               &reference = comparison.at("reference_pass_seconds");
    EXPECT_EQ(at_pace.number_at("predicted"), step.number_at("predicted"));
    EXPECT_EQ(reference.number_at("predicted"), 1e-3);
    EXPECT_EQ(reference.integer_at("count"), 2 + 2 * 5 + 1);  // windows that warm up, those compared, and the end
    const double pace = reference.number_at("measured") / 1e-3;
    // About: the pace is that of each window, and these are short. On busy cores passes differ by more than four times.
    EXPECT_NEAR(std::log(step.number_at("measured") / at_pace.number_at("measured")), std::log(pace), std::log(20));
    std::string operators;
    for (const Node& op : comparison.at("operators").items) operators += op.string_at("what") + ", ";
    for (const char* op : {"linear forward, ", "linear backward, ", "attention forward, ", "head_loss forward, "})
      EXPECT_NE(operators.find(op), std::string::npos) << operators;
    std::string kinds;
    for (const Node& kind : comparison.at("kinds").items) {
      kinds += kind.string_at("what") + " ";
      const double predicted = kind.number_at("predicted"), measured = kind.number_at("measured");
      EXPECT_GE(measured, 0);
      if (measured == 0) continue;  // it was always there before anyone waited for it
      EXPECT_NEAR(kind.number_at("error"), (predicted - measured) / measured,
                  1e-9 + 1e-9 * std::abs(predicted / measured));
    }
    EXPECT_NE(kinds.find("Forward Backward"), std::string::npos) << kinds;
    EXPECT_NE(kinds.find("Step"), std::string::npos) << kinds;
    EXPECT_EQ(kinds.find("SendActivation") != std::string::npos, std::string(ranks) == "2") << kinds;
  }
}

TEST_F(Spine, MemoryIsPreferredWhereItCostsNextToNothing) {
  const auto predicted = [&](const std::string& preferred) {
    const std::string plan = path("plan.json");
    const Outcome planned =
        run_braid("plan " + planning() + " --ranks 2 --policy sl-peft:pad_to=none --overwrite --out " + plan +
                  " --prefer " + preferred);
    EXPECT_EQ(planned.status, 0) << planned.text;
    EXPECT_EQ(read_json(plan).find("preferred") != nullptr, preferred == "memory");
    const Node prediction = read_json(plan).at("predicted");
    double peak = 0;
    for (const Node& bytes : prediction.at("peak_memory_bytes").items) peak = std::max(peak, bytes.as_number("bytes"));
    return std::pair(prediction.number_at("step_seconds"), peak);
  };
  const auto [fastest_seconds, fastest_bytes] = predicted("speed");
  const auto [seconds, bytes] = predicted("memory");
  EXPECT_LE(seconds, 1.0100001 * fastest_seconds);
  EXPECT_LE(bytes, fastest_bytes);
  const Outcome refused = run_braid("plan " + planning() + " --prefer beauty");
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.text.find("memory"), std::string::npos) << refused.text;
}

TEST_F(Spine, APilotOfAPlanMovesItsProfileByAsMuchAsItSays) {
  for (const char* ranks : {"1", "2"}) {
    const std::string plan = path("plan.json"), moved = path("moved.json");
    ASSERT_EQ(run_braid("plan " + planning() + " --overwrite --ranks " + ranks + " --out " + plan).status, 0);
    const std::string pilot = "profile --plan " + plan + " --profile-budget 30 --overwrite --out " + moved;
    EXPECT_EQ(run_braid(pilot).status, 2) << "a profile of another machine";
    const Outcome outcome = run_braid(pilot + " --foreign-profile");
    ASSERT_EQ(outcome.status, 0) << outcome.text;
    ASSERT_NE(outcome.text.find("pilot: "), std::string::npos) << outcome.text;
    const std::string said = ": the profile is moved by ";
    const std::size_t place = outcome.text.find(said);
    const double percent = place == std::string::npos ? 0 : std::stod(outcome.text.substr(place + said.size()));
    EXPECT_EQ(place == std::string::npos, outcome.text.find(": the prediction holds") != std::string::npos);
    const double after = read_json(moved).number_or("pass_skew", 1.0, 0.0);
    const double before = read_json(plan).at("profile").number_or("pass_skew", 1.0, 0.0);
    EXPECT_NEAR(after / before, 1 + percent / 100, 1e-3 * after) << outcome.text;
  }
}

TEST_F(Spine, AnExampleIsPlannedAndWrittenAgainOnlyWhenAsked) {
  const std::string init = "init " + path("example") + " --quiet";
  const auto files = [&] {
    std::map<std::filesystem::path, std::string> texts;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path("example"))) {
      if (entry.is_regular_file()) texts[entry.path()] = read_text(entry.path());
    }
    return texts;
  };
  ASSERT_EQ(run_braid(init).status, 0);
  const auto written = files();
  EXPECT_TRUE(written.contains(path("example") + "/workload.yaml"));
  testing::write_text(folder / "cluster.yaml", "gpu: a40\nnodes: 1\ngpus_per_node: 2\nintra_node: nvlink\n");
  const Outcome planned = run_braid("plan --policy megatron-pp --quiet --cluster " + path("cluster.yaml") +
                                    " --workload " + path("example") + "/workload.yaml --out " + path("plan.json"));
  EXPECT_EQ(planned.status, 0) << planned.text;

  testing::write_text(path("example") + "/workload.yaml", "mine");
  EXPECT_NE(run_braid(init).status, 0);
  EXPECT_EQ(read_text(path("example") + "/workload.yaml"), "mine");
  ASSERT_EQ(run_braid(init + " --overwrite").status, 0);
  EXPECT_EQ(files(), written);
}

TEST_F(Spine, VersionAndHelpEndWell) {
  EXPECT_EQ(run_braid("--version").status, 0);
  for (const char* command : {"init", "profile", "plan", "simulate", "train", "validate"}) {
    const Outcome outcome = run_braid(std::string(command) + " --help");
    EXPECT_EQ(outcome.status, 0);
    EXPECT_NE(outcome.text.find(std::string("usage: braid ") + command), std::string::npos);
  }
  EXPECT_EQ(run_braid("").status, 2);
}

}  // namespace
}  // namespace braid::cli
