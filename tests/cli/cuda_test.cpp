#include <cstdlib>
#include <map>

#include "base/node.h"
#include "cli/workspace.h"

/// The commands with --backend cuda, whose GPU is this processor: the kernels of kernels/cuda, thread by thread
/// (tests/kernels/cuda_on_cpu).
namespace braid::cli {
namespace {

using testing::Outcome;
using testing::read_text;
using testing::run_braid;
using testing::write_text;

class CudaCommands : public testing::Workspace {
 protected:
  void SetUp() override {
    Workspace::SetUp();
    ::setenv("BRAID_CUDA_LIBRARY", BRAID_CUDA_ON_CPU, 1);
    // Little, as a GPU's thread takes the processor a thousand times as long.
    std::string text = "backbone: " BRAID_SOURCE_DIR "/tests/golden/llama\ntasks:\n";
    for (const std::string task : {"0", "1"})
      text += "  - {name: task" + task + ", dataset: data" + task +
              ".jsonl, max_length: 24, adapter: {type: lora, r: " + (task == "0" ? "2" : "4") +
              (task == "0" ? "" : ", dropout: 0.1") +
              "}, global_batch_size: 2, steps: 2, optimizer: {type: adamw, lr: 1e-2}, seed: " + task + "}\n";
    write_text(folder / "workload.yaml", text);
    measured_by("cuda");
  }
  void TearDown() override {
    ::unsetenv("BRAID_CUDA_LIBRARY");
    Workspace::TearDown();
  }

  /// Has the profile say so.
  void measured_by(const std::string& backend) const {
    std::string profile = read_text(folder / "profile.json");
    profile.insert(profile.find("\"peak_flops\""), "\"backend\": \"" + backend + "\",\n  ");
    write_text(folder / ("profile_" + backend + ".json"), profile);
  }
  std::string planning_by(const std::string& profile) const {
    return "--workload " + path("workload.yaml") + " --profile " + path(profile) + " --foreign-profile --policy " +
           policy + " ";
  }
  std::string policy = "megatron-pp";

  /// Losses by task and step.
  std::map<std::string, double> losses_of(const std::string& run) const {
    std::map<std::string, double> losses;
    std::istringstream text(read_text(folder / run / "metrics.jsonl"));
    for (std::string line; std::getline(text, line);) {
      const Node node = parse_json(line, "metrics.jsonl");
      losses[node.string_at("task") + " " + std::to_string(node.integer_at("step"))] = node.number_at("loss");
    }
    return losses;
  }
};

TEST_F(CudaCommands, WhatIsPlannedForGpusIsTrainedAndValidatedOnThem) {
  ASSERT_EQ(run_braid("train " + planning_by("profile.json") + "--ranks 1 --out " + path("cpu")).status, 0);
  for (const std::string ranks : {"1", "2"}) {
    const std::string plan = path("plan" + ranks + ".json"), out = "run" + ranks;
    const Outcome planned = run_braid("plan " + planning_by("profile_cuda.json") + "--backend cuda --pp " + ranks +
                                      " --ranks " + ranks + " --out " + plan);
    ASSERT_EQ(planned.status, 0) << planned.text;
    EXPECT_EQ(read_json(plan).at("profile").string_at("backend"), "cuda");
    EXPECT_EQ(read_json(plan).at("cluster").string_at("gpu"), "cuda");
    const Outcome trained = run_braid("train --plan " + plan + " --out " + path(out));
    ASSERT_EQ(trained.status, 0) << trained.text;
    const auto cpu = losses_of("cpu"), cuda = losses_of(out);
    ASSERT_EQ(cuda.size(), 4U);
    bool any_rounded = false;
    for (const auto& [step, loss] : cpu) {
      EXPECT_NEAR(cuda.at(step) / loss, 1, 5e-3) << step;
      any_rounded |= cuda.at(step) != loss;
    }
    EXPECT_TRUE(any_rounded) << "activations are in bf16";
  }
  const Outcome validated = run_braid("validate --foreign-profile --plan " + path("plan1.json") +
                                      " --windows 1 --runs 1 --operators --json --out " + path("validated.json"));
  ASSERT_EQ(validated.status, 0) << validated.text;
  const Node comparison = read_json(path("validated.json"));
  bool attends = false;
  for (const Node& op : comparison.at("operators").sequence("operators")) {
    attends |= op.string_at("what") == "attention forward";
    EXPECT_GT(op.number_at("measured") + (op.string_at("what").starts_with("dispatch") ? 1 : 0), 0);
  }
  EXPECT_TRUE(attends);
}

TEST_F(CudaCommands, TheProfilesKernelsCompute) {
  ASSERT_EQ(
      run_braid("train " + planning_by("profile_cuda.json") + "--backend cuda --ranks 1 --out " + path("first")).status,
      0);
  const auto first = losses_of("first");
  std::map<std::string, std::map<std::string, double>> second;
  for (const std::string kernels : {"linear", "attention"}) {
    std::string profile = read_text(folder / "profile_cuda.json");
    profile.insert(profile.find("\"peak_flops\""),
                   "\"kernels\": [{\"op\": \"" + kernels + "\", \"pass\": \"forward\", \"shape\": []}],\n  ");
    write_text(folder / ("profile_" + kernels + ".json"), profile);
    const Outcome trained = run_braid("train " + planning_by("profile_" + kernels + ".json") +
                                      "--backend cuda --ranks 1 --out " + path(kernels));
    ASSERT_EQ(trained.status, 0) << trained.text;
    second[kernels] = losses_of(kernels);
    bool any_rounded = false;
    for (const auto& [step, loss] : first) {
      EXPECT_NEAR(second[kernels].at(step) / loss, 1, 5e-3) << step;
      any_rounded |= second[kernels].at(step) != loss;
    }
    EXPECT_TRUE(any_rounded) << kernels << ": no second kernel computed";
    // And by the plan that was made, on another day.
    const Outcome again = run_braid("train --plan " + path(kernels + "/plan.json") + " --out " + path(kernels + "2"));
    ASSERT_EQ(again.status, 0) << again.text;
    EXPECT_EQ(losses_of(kernels + "2"), second[kernels]);
  }
  EXPECT_NE(second["linear"], second["attention"]);
  // Graphs launch the same kernels, of microbatches as large as the profile says.
  std::string profile = read_text(folder / "profile_cuda.json");
  profile.insert(profile.find("\"peak_flops\""),
                 R"("kernels": [{"op": "launch", "pass": "forward", "shape": []},
      {"op": "launch", "pass": "backward", "shape": [], "from": 0, "to": 40}],)");
  write_text(folder / "profile_graphs.json", profile);
  const Outcome trained =
      run_braid("train " + planning_by("profile_graphs.json") + "--backend cuda --ranks 1 --out " + path("graphs"));
  ASSERT_EQ(trained.status, 0) << trained.text;
  EXPECT_EQ(losses_of("graphs"), first);
  const Node kernels = read_json(folder / "graphs/plan.json").at("profile").at("kernels");
  ASSERT_EQ(kernels.items.size(), 2U);
  EXPECT_EQ(kernels.items[0].find("to"), nullptr);
  EXPECT_EQ(kernels.items[1].number_at("to"), 40);
}

TEST_F(CudaCommands, KernelsThatNoGpuHasAreRefused) {
  const auto refused = [&](const std::string& kernels, const std::string& words, const std::string& profile) {
    std::string text = read_text(folder / profile);
    text.insert(text.find("\"peak_flops\""), "\"kernels\": " + kernels + ",\n  ");
    write_text(folder / "odd.json", text);
    expect_bad_input("plan " + planning_by("odd.json") + "--backend cuda --ranks 1 --out " + path("out"), words);
  };
  refused(R"([{"op": "lora", "pass": "forward", "shape": []}])", "lora forward has no second kernel",
          "profile_cuda.json");
  refused(R"([{"op": "attention", "pass": "backward", "shape": []}])", "attention backward has no second kernel",
          "profile_cuda.json");
  refused(R"([{"op": "linear", "pass": "forward", "shape": [64]}])", "the shape of 'linear' has 1 numbers; give 2",
          "profile_cuda.json");
  refused(R"([{"op": "launch", "pass": "forward", "shape": [], "from": 9, "to": 8}])", "to", "profile_cuda.json");
  refused(R"([{"op": "linear", "pass": "forward", "shape": []}])", "backend cpu has no second kernels", "profile.json");
  const std::string profile = "profile --workload " + path("workload.yaml") + " --ranks 1 ";
  expect_bad_input(profile + "--kernels joined --out " + path("p.json"), "--kernels joined is of --backend cuda");
  expect_bad_input(profile + "--backend cuda --kernels fast --out " + path("p.json"), "'fast' is unknown; give faster");
  expect_bad_input(profile + "--backend cuda --kernels plain", "give --out FILE");
  expect_bad_input("profile --kernels cudnn --check " + path("profile.json") + " " + path("profile.json"),
                   "leave it out, or --check");
  expect_bad_input("profile --kernels cudnn --analytic h100 --out " + path("p.json"), "leave it out, or --analytic");
}

TEST_F(CudaCommands, WeightsAreKeptInShares) {
  ASSERT_EQ(run_braid("train " + planning_by("profile.json") + "--ranks 1 --out " + path("cpu")).status, 0);
  policy = "megatron-fsdp";
  const Outcome trained =
      run_braid("train " + planning_by("profile_cuda.json") + "--backend cuda --ranks 2 --out " + path("run"));
  ASSERT_EQ(trained.status, 0) << trained.text;
  EXPECT_NE(read_text(folder / "run/plan.json").find("\"shards_weights\": true"), std::string::npos);
  const auto cpu = losses_of("cpu"), cuda = losses_of("run");
  for (const auto& [step, loss] : cpu) EXPECT_NEAR(cuda.at(step) / loss, 1, 5e-3) << step;
}

TEST_F(CudaCommands, WhatWasMeasuredByOthersIsNotTakenForIt) {
  const auto refused = [&](const std::string& command, const std::string& words) {
    expect_bad_input(command + " --out " + path("out"), words);
  };
  const std::string workload = "--workload " + path("workload.yaml") + " --policy megatron-pp --ranks 1 ";
  refused("plan " + workload + "--profile " + path("profile_cuda.json"),
          "profile_cuda.json: was measured on 'made up'");
  measured_by("cpux");
  refused("plan " + planning_by("profile_cpux.json"), "unknown backend 'cpux'; give one of: cpu, cuda, cuda-f32");
  write_text(folder / "cluster.yaml", "gpu: cuda\ngpus_per_node: 1\n");
  refused("plan " + workload + "--cluster " + path("cluster.yaml"),
          "cluster.yaml: is of gpu: cuda, which --backend cpu does not compute on; give --backend cuda");
  write_text(folder / "cluster.yaml", "gpu: cpu\ngpus_per_node: 1\n");
  refused("plan " + workload + "--backend cuda --cluster " + path("cluster.yaml"), "give a cluster of gpu: cuda");
  ASSERT_EQ(
      run_braid("plan " + planning_by("profile_cuda.json") + "--backend cuda --ranks 1 --out " + path("plan.json"))
          .status,
      0);
  refused("validate --backend cpu --plan " + path("plan.json"), "predicts --backend cuda; plan anew to validate cpu");
  ASSERT_EQ(run_braid("plan " + planning_by("profile_cuda.json") + "--backend cuda --ranks 2 --pp 2 --out " +
                      path("two.json"))
                .status,
            0);
  ::setenv("BRAID_GPUS_ON_CPU", "1", 1);
  refused("train --plan " + path("two.json"), "the plan needs 2 GPUs, and here are 1; plan with --ranks 1");
  ::unsetenv("BRAID_GPUS_ON_CPU");
}

}  // namespace
}  // namespace braid::cli
