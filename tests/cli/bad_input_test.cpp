#include <cstdlib>
#include <map>
#include <regex>

#include "cli/workspace.h"

namespace braid::cli {
namespace {

using BadInput = testing::Workspace;
using testing::write_text;

TEST_F(BadInput, AMissingFileIsNamed) {
  expect_bad_input("plan --workload " + path("none.yaml"), "none.yaml: cannot be read");
  expect_bad_input("simulate --plan " + path("none.json"), "none.json: cannot be read");
  expect_bad_input("plan --workload " + path("workload.yaml") + " --profile " + path("none.json"),
                   "none.json: cannot be read");
}

TEST_F(BadInput, UnknownWordsAreRefusedWithTheList) {
  expect_bad_input(
      "fly",
      "unknown command 'fly'; commands: init, import, profile, plan, compare, simulate, train, status, task, validate");
  expect_bad_input(
      "plan " + planning() + " --policy fastest",
      "unknown policy 'fastest'; known: hf-peft, nemo, megatron-fsdp, megatron-pp, gpipe, sl-peft, mlora, task-fused, "
      "task-sequential, lobra, lobra-sequential, lorafusion, muxtune");
  expect_bad_input("plan " + planning() + " --policy gpipe:speed=high",
                   "policy gpipe has no option 'speed=high'; its options: pad_to=");
  expect_bad_input("plan " + planning() + " --policy gpipe:pad_to=moon", "'moon' is not a value of pad_to");
  expect_bad_input("plan " + planning() + " --fast", "--fast");
  expect_bad_input("plan " + planning() + " --pp -3", "--pp -3 is not usable");
}

TEST_F(BadInput, ModelsForSolversNeedAnEmptyFolderAndASolutionAPolicyThatTakesOne) {
  expect_bad_input("plan " + planning() + " --dump-model \"\"", "--dump-model is empty; give a path");
  expect_bad_input("plan " + planning() + " --policy muxtune --solution " + path("deployment.sol"),
                   "--solution: policy 'muxtune' has no program of its deployment; give --policy lobra or");
  write_text(folder / "models/kept.txt", "mine\n");
  expect_bad_input("plan " + planning() + " --policy lobra --dump-model " + path("models"), "is not empty");
}

TEST_F(BadInput, APlanThatIsReplacedMustBeThere) {
  expect_bad_input("plan " + planning() + " --replaces " + path("none.json"), "none.json: cannot be read");
}

TEST_F(BadInput, ABadWorkloadKeyOrValueIsNamedWithItsLine) {
  write_text(folder / "workload.yaml", workload() + "    colour: red\n");
  expect_bad_input("plan " + planning(), "workload.yaml:27: unknown key 'colour'; valid keys:");
  std::string text = workload();
  text.replace(text.find("r: 2"), 4, "r: 0");
  write_text(folder / "workload.yaml", text);
  expect_bad_input("plan " + planning(), "workload.yaml:6: ");
}

TEST_F(BadInput, AnUnsupportedArchitectureIsNamed) {
  write_text(folder / "gpt/config.json", "{\n \"model_type\": \"gptj\"\n}\n");
  std::string text = workload();
  text.replace(text.find("/"), text.find("\n") - text.find("/"), path("gpt"));
  write_text(folder / "workload.yaml", text);
  expect_bad_input("plan " + planning(),
                   "config.json:2: model_type 'gptj' is not supported; supported: llama, mistral, qwen2");
}

/// It is no bad input, but may be other than it was meant.
TEST_F(BadInput, SchedulesThatAreNotWhatTheySayAreNoted) {
  const std::string plan = "plan " + planning() + " --policy megatron-pp --ranks 1 --out ";
  EXPECT_EQ(testing::run_braid(plan + path("plain.json")).text.find("note:"), std::string::npos);
  std::string text = workload();
  text.replace(text.find("lr: 1e-2"), 8, "lr: 1e-2, warmup_steps: 90000");
  const std::size_t batch = text.find("global_batch_size: ");
  text.replace(batch, text.find_first_of(",\n}", batch) - batch, "global_batch_size: 900");
  write_text(folder / "workload.yaml", text);
  const std::string told = testing::run_braid(plan + path("noted.json")).text;
  EXPECT_NE(told.find("note: task 'task0': each step takes all of its samples, "), std::string::npos) << told;
  EXPECT_NE(told.find("note: task 'task0': the learning rate does not reach lr, as warmup_steps are 90000"),
            std::string::npos)
      << told;
}

TEST_F(BadInput, OneFileGivenForAnotherIsNamed) {
  ASSERT_EQ(
      testing::run_braid("plan " + planning() + " --policy megatron-pp --ranks 1 --out " + path("plan.json")).status,
      0);
  expect_bad_input("plan --workload " + path("workload.yaml") + " --profile " + path("plan.json") + " --ranks 1",
                   "plan.json:1: is a plan, not a profile");
  std::string text = workload();
  text.replace(text.find("lr: 1e-2"), 8, "lr: '1e-2'");
  write_text(folder / "workload.yaml", text);
  expect_bad_input("plan " + planning() + " --ranks 1", ", without quotes");
}

TEST_F(BadInput, RanksThatWouldLeaveTheMachineToNobodyAreNotStarted) {
  expect_bad_input("profile --workload " + path("workload.yaml") + " --out " + path("many.json") + " --ranks 5000",
                   "5000 ranks cannot run on this machine");
}

TEST_F(BadInput, ATargetThatTheFamilyDoesNotHaveIsRefusedWhereItWouldBeTrained) {
  write_text(folder / "gpt/config.json",
             R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 300})");
  std::string text = workload();
  text.replace(text.find("/"), text.find("\n") - text.find("/"), path("gpt"));
  text.replace(text.find("r: 2"), 4, "r: 2, target_modules: [q_proj]");
  write_text(folder / "workload.yaml", text);
  expect_bad_input("profile --workload " + path("workload.yaml") + " --out " + path("p.json") + " --ranks 1",
                   "gpt has no linear layer q_proj of its own to train an adapter on; name some of attn.c_proj, c_fc, "
                   "mlp.c_proj, c_attn in target_modules");
  EXPECT_FALSE(std::filesystem::exists(folder / "p.json"));
}

TEST_F(BadInput, WeightsThatTheProfileDoesNotHaveAreRefused) {
  write_text(folder / "cluster.yaml", "gpu: a40\nnodes: 1\ngpus_per_node: 1\n");
  for (const char* type : {"f32", "int8"}) {
    write_text(folder / "workload.yaml", fmt::format("base_weights: {}\n{}", type, workload()));
    expect_bad_input("plan --workload " + path("workload.yaml") + " --cluster " + path("cluster.yaml"),
                     fmt::format("the profile is of bf16 weights, and the workload's base_weights are {}", type));
  }
}

TEST_F(BadInput, ABrokenSafetensorsFileIsNamed) {
  std::filesystem::copy(std::filesystem::path(BRAID_SOURCE_DIR) / "tests/golden/llama", folder / "broken");
  std::filesystem::resize_file(folder / "broken/model.safetensors", 100000);
  std::string text = workload();
  text.replace(text.find("/"), text.find("\n") - text.find("/"), path("broken"));
  write_text(folder / "workload.yaml", text);
  expect_bad_input("train " + planning() + " --ranks 1 --out " + path("out"), "model.safetensors");
}

TEST_F(BadInput, ADatasetLineThatIsNotJsonIsNamed) {
  write_text(folder / "data1.jsonl", "{\"input_ids\": [1, 2, 3]}\n{\"input_ids\": [1, 2\n");
  expect_bad_input("plan " + planning(), "data1.jsonl:2: ");
}

TEST_F(BadInput, ASampleLongerThanMaxLengthIsNamed) {
  write_text(folder / "data0.jsonl", dataset(3, 40));
  expect_bad_input("plan " + planning(), "data0.jsonl:1: ");
}

TEST_F(BadInput, TextForABackboneWithoutATokenizerNamesTheRemedy) {
  write_text(folder / "data0.jsonl", "{\"text\": \"hello\"}\n");
  expect_bad_input("plan " + planning(), "scripts/pretokenize.py");
}

TEST_F(BadInput, ATaskThatDoesNotFitMemoryIsNamedWithTheBytesItMissesAndWhatFits) {
  const std::string plan = "plan " + planning() + " --policy megatron-pp --ranks 1 --out ";
  const std::string misses = "task 'task2' does not fit memory under megatron-pp; ";
  set_memory(300000);
  expect_bad_input(
      plan + path("none.json"),
      misses +
          "no option or policy fits, no max_length from 2 up, no global_batch_size and no task alone (rank "
          "0 misses 672.7 kB of 300.0 kB)",
      "none.json");
  set_memory(850000);
  expect_bad_input(plan + path("task.json"),
                   misses +
                       "leave out task2, which gives up 37.5 % of a step's tokens (rank 0 misses 122.7 kB of 850.0 "
                       "kB)",
                   "task.json");
  set_memory(900000);
  expect_bad_input(plan + path("policy.json"),
                   misses + "plan with --policy megatron-pp:pad_to=none (rank 0 misses 72.7 kB of 900.0 kB)",
                   "policy.json");
  EXPECT_EQ(testing::run_braid("plan " + planning() + " --policy megatron-pp:pad_to=none --ranks 1 --out " +
                               path("policy.json"))
                .status,
            0);
  // A little more holds it where layers are recomputed.
  set_memory(1000000);
  EXPECT_EQ(testing::run_braid(plan + path("recompute.json")).status, 0);
  expect_bad_input("plan " + planning() + " --policy megatron-pp:recompute=none --ranks 1 --out " + path("kept.json"),
                   misses + "plan with --policy megatron-pp:recompute=auto (rank 0 misses 85.9 kB of 1.0 MB)",
                   "kept.json");
}

TEST_F(BadInput, MoreStagesThanLayersAreRefused) {
  expect_bad_input("plan " + planning() + " --ranks 4 --pp 3",
                   "3 stages are more than the 2 layers of llama; give --pp <= 2");
}

TEST_F(BadInput, WhatNoPlanCouldDoIsRefusedBeforeAnythingIsMeasuredOrWritten) {
  // Without --profile one would be measured and kept here.
  const std::string kept = folder / "cache";
  for (const std::string command : {"plan", "compare"}) {
    for (const auto& [flag, said] : std::map<std::string, std::string>{
             {"--microbatches 1000", "--microbatches 1000 is not usable; give 1.."},
             {"--ranks 2 --pp 3", "3 stages are more than the 2 layers of llama"},
             {"--ranks 2 --layers 3", "--layers 3: a stage of 3 layers, and llama has 2; give as many in all"},
             {"--ranks 99999999999", "--ranks 99999999999 is not usable"}}) {
      ::setenv("XDG_CACHE_HOME", kept.c_str(), 1);
      expect_bad_input(command + " --workload " + path("workload.yaml") + " " + flag + " --out " + path("out.json"),
                       said, "out.json");
      ::unsetenv("XDG_CACHE_HOME");
      EXPECT_FALSE(std::filesystem::exists(kept)) << command << " " << flag;
    }
  }
  expect_bad_input("compare --workload " + path("workload.yaml") + " --ranks 2 --tp 4",
                   "--tp 4 needs 4 ranks and the cluster has 2; give --tp <= 2");
  // Each policy has its own reason.
  ::setenv("XDG_CACHE_HOME", kept.c_str(), 1);
  const auto refused = testing::run_braid("compare --workload " + path("workload.yaml") +
                                          " --policy gpipe,megatron-fsdp --ranks 2 --tp 2 --out " + path("out.json"));
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.text.find("this policy has no tensor parallelism"), std::string::npos) << refused.text;
  EXPECT_FALSE(std::filesystem::exists(kept));
  EXPECT_FALSE(std::filesystem::exists(folder / "out.json"));
}

TEST_F(BadInput, MessagesAreOneLineOfValidUtf8) {
  const std::string name = std::string("b\xFF") + "d\nfile.yaml";
  expect_bad_input("plan --workload '" + path(name) + "'",
                   "b\xEF\xBF\xBD"
                   "d file.yaml: cannot be read");
}

TEST_F(BadInput, SplitsOfOtherLayersAreRefused) {
  expect_bad_input("plan " + planning() + " --ranks 2 --layers 2,1",
                   "--layers 2,1: these are 3 layers, and llama has 2; give as many");
  expect_bad_input("plan " + planning() + " --ranks 2 --layers some",
                   "--layers 'some' is not usable; give 'even', 'balanced' or the layers of each stage");
  expect_bad_input("train " + planning() + " --ranks 1 --layers 1,1 --out " + path("out"),
                   "2 stages need 2 ranks and the cluster has 1");
}

TEST_F(BadInput, MoreStagesThanRanksAreRefused) {
  expect_bad_input("plan " + planning() + " --ranks 1 --pp 2", "2 stages need 2 ranks and the cluster has 1");
}

TEST_F(BadInput, WhatThisBuildCannotPlanIsSaid) {
  expect_bad_input("plan " + planning() + " --ranks 2 --tp 2 --policy gpipe",
                   "--tp 2: this policy has no tensor parallelism");
  for (const std::string policy : {"lobra", "lorafusion"})
    expect_bad_input("plan " + planning() + " --microbatches 2 --policy " + policy,
                     "--microbatches does not go with " + policy);
  expect_bad_input("plan " + planning() + " --ranks 2 --layers balanced --policy lobra",
                   "--layers does not go with lobra");
  expect_bad_input("plan " + planning() + " --ranks 1 --policy lorafusion:multiple=100000",
                   "multiple=100000 is more than the longest sample");
  write_text(folder / "workload.yaml", "reproducible: true\n" + workload());
  std::string text = testing::read_text(folder / "workload.yaml");
  text.replace(text.find("type: lora"), 10, "type: dora");
  write_text(folder / "workload.yaml", text);
  expect_bad_input("plan " + planning(),
                   "reproducible: true is of adapters of type lora, and task 'task0' has type dora");
}

TEST_F(BadInput, WhatThisBuildCannotExecuteIsSaidWithTheRemedy) {
  const std::string train = "train " + planning() + " --ranks 1 --out " + path("out") + " --policy ";
  for (const std::string option : {"kernels=fused", "pruning=off"})
    expect_bad_input(train + "mlora:" + option, option + " are kernels that are simulated only");
  expect_bad_input(train + "mlora:overlap=off", "overlap=off is simulated only, for GPUs that a cluster names");
}

TEST_F(BadInput, TensorParallelismIsPlannedAndTrainNamesIt) {
  write_text(folder / "cluster.yaml", "gpu: a40\nnodes: 1\ngpus_per_node: 2\nintra_node: nvlink\n");
  const std::string plan = "plan --workload " + path("workload.yaml") + " --cluster " + path("cluster.yaml") +
                           " --policy nemo --tp 2 --pp 1 --out " + path("plan.json");
  ASSERT_EQ(testing::run_braid(plan).status, 0);
  ASSERT_EQ(testing::run_braid("simulate --plan " + path("plan.json")).status, 0);
  expect_bad_input("train --plan " + path("plan.json") + " --out " + path("out"),
                   "the plan is for gpu 'a40' by its datasheet, which is simulated only");
}

TEST_F(BadInput, ChunkSizesAreMultiplesOfSixteen) {
  for (const std::string chunk : {"0", "-16", "17", "1.5"})
    expect_bad_input(
        "plan " + planning() + " --policy muxtune:chunk=" + chunk,
        "'" + chunk + "' is not a value of chunk; give one of: auto, searched, or a positive multiple of 16");
  expect_bad_input("plan " + planning() + " --ranks 1 --policy muxtune:pack=16", "give pack=48 or more");
}

TEST_F(BadInput, APlanThatWasEditedIsRefused) {
  ASSERT_EQ(testing::run_braid("plan " + planning() + " --ranks 1 --out " + path("plan.json")).status, 0);
  const std::string good = testing::read_text(folder / "plan.json");
  const std::pair<std::string, std::string> edits[] = {{"\"microbatches\": ", "\"microbatches\": 1"},
                                                       {"\"buckets\": [", "\"buckets\": [ [],"},
                                                       {"\"tp\": 1", "\"tp\": 2"},
                                                       {"\"step_seconds\": ", "\"step_seconds\": 1"}};
  for (const auto& [from, to] : edits) {
    std::string text = good;
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.rfind(from), from.size(), to);
    write_text(folder / "plan.json", text);
    for (const std::string& command : {std::string("simulate --plan "), "train --out " + path("out") + " --plan "})
      expect_bad_input(command + path("plan.json"), "make the plan again");
  }
}

TEST_F(BadInput, ANonEmptyOutputFolderIsRefused) {
  write_text(folder / "full/file", "x");
  expect_bad_input("train " + planning() + " --ranks 1 --out " + path("full"),
                   "is not empty; give another folder or --overwrite");
  EXPECT_EQ(testing::read_text(folder / "full/file"), "x");
}

TEST_F(BadInput, DataThatChangedSinceThePlanIsNamed) {
  ASSERT_EQ(testing::run_braid("plan " + planning() + " --ranks 1 --out " + path("plan.json")).status, 0);
  write_text(folder / "data2.jsonl", dataset(30, 20));
  expect_bad_input("train --plan " + path("plan.json") + " --out " + path("out"),
                   "data2.jsonl: has changed since the plan was made");
}

TEST_F(BadInput, ABrokenPlanIsNamedWithItsLine) {
  ASSERT_EQ(
      testing::run_braid("plan " + planning() + " --policy megatron-pp --ranks 1 --out " + path("plan.json")).status,
      0);
  std::string text = testing::read_text(folder / "plan.json");
  const std::size_t place = text.find("\"template\": \"1f1b\"");
  ASSERT_NE(place, std::string::npos);
  text.replace(place, 18, "\"template\": \"zigzag\"");
  write_text(folder / "plan.json", text);
  expect_bad_input("simulate --plan " + path("plan.json"),
                   "'zigzag' is not a value of 'template'; give one of: 1f1b, interleaved-1f1b, gpipe");
  write_text(folder / "plan.json", text.substr(0, text.size() / 2));
  expect_bad_input("simulate --plan " + path("plan.json"), "not valid JSON");
  write_text(folder / "plan.json", "{}");
  expect_bad_input("simulate --plan " + path("plan.json"), "this is not a plan");
}

TEST_F(BadInput, RanksThatAreNotThePlansAreRefused) {
  ASSERT_EQ(testing::run_braid("plan " + planning() + " --ranks 2 --out " + path("plan.json")).status, 0);
  const testing::Outcome outcome =
      testing::run_shell("mpirun --allow-run-as-root --oversubscribe -n 3 " BRAID_PROGRAM " train --plan " +
                         path("plan.json") + " --out " + path("out"));
  EXPECT_EQ(outcome.status, 2) << outcome.text;
  EXPECT_NE(outcome.text.find("error: the plan needs 2 ranks and 3 are running"), std::string::npos) << outcome.text;
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST_F(BadInput, ARankOfAnotherBuildOrPlanIsNamed) {
  for (const std::string policy : {"gpipe", "mlora"})
    ASSERT_EQ(
        testing::run_braid("plan " + planning() + " --ranks 2 --policy " + policy + " --out " + path(policy)).status,
        0);
  std::filesystem::copy_file(BRAID_PROGRAM, folder / "other");
  std::ofstream(folder / "other", std::ios::app | std::ios::binary) << '\n';
  const auto start = [&](const std::string& program, const std::string& plan) {
    const std::string rank = " -n 1 ", rest = " --out " + path("out");
    return testing::run_shell("mpirun --allow-run-as-root --oversubscribe" + rank + BRAID_PROGRAM + " train --plan " +
                              path("gpipe") + rest + " :" + rank + program + " train --plan " + path(plan) + rest);
  };
  const testing::Outcome build = start(path("other"), "gpipe"), plan = start(BRAID_PROGRAM, "mlora");
  EXPECT_EQ(build.status, 2) << build.text;
  EXPECT_NE(build.text.find("error: rank 1 was started with another build of braid than rank 0"), std::string::npos)
      << build.text;
  EXPECT_EQ(plan.status, 2) << plan.text;
  EXPECT_NE(plan.text.find("error: rank 1 was started with another plan than rank 0"), std::string::npos) << plan.text;
  EXPECT_FALSE(std::filesystem::exists(folder / "out/adapters"));
}

TEST_F(BadInput, ARankThatIsKilledEndsTheOthersAndIsNamed) {
  write_text(folder / "workload.yaml", std::regex_replace(workload(), std::regex("steps: \\d+"), "steps: 1000000"));
  write_text(folder / "kill.sh",
             "\"$@\" & run=$!\n"
             "for i in $(seq 900); do [ -s '" +
                 path("out/metrics.jsonl") +
                 "' ] && break; sleep 0.1; done\n"
                 "launcher=$(cat /proc/$run/task/$run/children)\n"
                 "launcher=${launcher%% *}\n"
                 "ranks=$(cat /proc/$launcher/task/$launcher/children)\n"
                 "for rank in $ranks; do last=$rank; done\n"
                 "kill -9 $last\nbegan=$(date +%s)\nwait $run\n"
                 "echo status $? after $(($(date +%s) - began)) seconds\n");
  const testing::Outcome outcome = testing::run_shell("bash " + path("kill.sh") + " " BRAID_PROGRAM " train " +
                                                      planning() + " --quiet --ranks 2 --out " + path("out"));
  EXPECT_NE(outcome.text.find("error: rank 1 was ended by signal 9 (Killed), and the others with it\n"),
            std::string::npos)
      << outcome.text;
  EXPECT_EQ(outcome.text.find("mpirun"), std::string::npos) << outcome.text;
  EXPECT_EQ(outcome.text.find("status 0 "), std::string::npos) << outcome.text;
  const std::size_t after = outcome.text.find(" after ");
  ASSERT_NE(after, std::string::npos) << outcome.text;
  EXPECT_LT(std::atoi(outcome.text.c_str() + after + 7), 20) << outcome.text;
}

TEST_F(BadInput, AFaultThatRanksFindIsTold) {
  // One rank of two cannot read its layers: that rank's message comes through, and its status.
  std::filesystem::copy(std::filesystem::path(BRAID_SOURCE_DIR) / "tests/golden/llama", folder / "broken");
  std::string text = workload();
  text.replace(text.find("/"), text.find("\n") - text.find("/"), path("broken"));
  write_text(folder / "workload.yaml", text);
  std::string weights = testing::read_text(folder / "broken/model.safetensors");
  const std::string entry = R"("model.layers.1.mlp.down_proj.weight":{"dtype":"F)";
  const std::size_t place = weights.find(entry);
  ASSERT_NE(place, std::string::npos);
  weights[place + entry.size()] = '7';
  write_text(folder / "broken/model.safetensors", weights);
  expect_bad_input("train " + planning() + " --ranks 2 --out " + path("out"),
                   "tensor 'model.layers.1.mlp.down_proj.weight' is 'F72'; give weights of F32");
}

TEST_F(BadInput, MoreWeightsThanLayersAreNamed) {
  std::filesystem::copy(std::filesystem::path(BRAID_SOURCE_DIR) / "tests/golden/llama", folder / "cut");
  std::string config = testing::read_text(folder / "cut/config.json");
  const std::size_t layers = config.find("\"num_hidden_layers\": 2");
  ASSERT_NE(layers, std::string::npos);
  config[layers + 21] = '1';
  write_text(folder / "cut/config.json", config);
  std::string text = workload();
  text.replace(text.find("/"), text.find("\n") - text.find("/"), path("cut"));
  write_text(folder / "workload.yaml", text);
  expect_bad_input("train " + planning() + " --ranks 1 --out " + path("out"), "but config.json says 1 layers");
}

TEST_F(BadInput, APlanAndAFlagThatItFixedAreRefused) {
  ASSERT_EQ(testing::run_braid("plan " + planning() + " --ranks 1 --out " + path("plan.json")).status, 0);
  for (const std::string flag :
       {"--pp 1", "--ranks 2", "--layers 1,1", "--policy gpipe", "--microbatches 1", "--profile none.json"}) {
    expect_bad_input("simulate --plan " + path("plan.json") + " " + flag, "are both given; a plan has fixed that");
  }
  expect_bad_input("plan " + planning() + " --pp 0", "--pp 0 is not usable; give a number >= 1");
  expect_bad_input("plan " + planning() + " --policy gpipe:pad_to=none:pad_to=longest",
                   "option pad_to is given twice; keep one");
}

TEST_F(BadInput, APlanEditedByHandIsRefused) {
  ASSERT_EQ(testing::run_braid("plan " + planning() + " --ranks 1 --out " + path("plan.json")).status, 0);
  std::string text = testing::read_text(folder / "plan.json");
  const std::size_t place = text.find("\"steps\": 4");
  ASSERT_NE(place, std::string::npos);
  text[place + 9] = '9';
  write_text(folder / "plan.json", text);
  expect_bad_input("simulate --plan " + path("plan.json"), "the workload in this plan was changed after planning");
}

TEST_F(BadInput, ADecisionEditedByHandIsRefused) {
  ASSERT_EQ(testing::run_braid("plan " + planning() + " --ranks 1 --out " + path("plan.json")).status, 0);
  const std::string text = testing::read_text(folder / "plan.json");
  for (const auto& [decision, edited] : {std::pair("\"skips_padding\": false", "\"skips_padding\": true"),
                                         std::pair("\"microbatches\": ", "\"microbatches\": 1"),
                                         std::pair("\"first_step_seconds\": ", "\"first_step_seconds\": 1")}) {
    std::string changed = text;
    const std::size_t place = changed.find(decision);
    ASSERT_NE(place, std::string::npos) << decision;
    changed.replace(place, std::string_view(decision).size(), edited);
    write_text(folder / "plan.json", changed);
    expect_bad_input("simulate --plan " + path("plan.json"), "this plan was changed after planning");
  }
}

TEST_F(BadInput, AnAdapterOfAnotherScaleIsRefused) {
  std::filesystem::copy(std::filesystem::path(BRAID_SOURCE_DIR) / "tests/golden/llama", folder / "init",
                        std::filesystem::copy_options::recursive);
  ASSERT_EQ(testing::run_braid("train " + planning() + " --ranks 1 --out " + path("first")).status, 0);
  std::string text = workload();
  text.replace(text.find("{type: lora, r: 2"), 17, "{type: lora, r: 2, alpha: 7, init_from: first/adapters/task0");
  write_text(folder / "workload.yaml", text);
  expect_bad_input("train " + planning() + " --ranks 1 --out " + path("out"),
                   "the adapter has lora_alpha 4, the task alpha 7");
}

TEST_F(BadInput, WhatExistsIsNotWrittenOver) {
  write_text(folder / "trace.json", "mine");
  ASSERT_EQ(testing::run_braid("plan " + planning() + " --ranks 1 --out " + path("plan.json")).status, 0);
  expect_bad_input("simulate --plan " + path("plan.json") + " --timeline-out " + path("trace.json"),
                   "trace.json: exists; give another file or --overwrite");
  EXPECT_EQ(testing::read_text(folder / "trace.json"), "mine");
  expect_bad_input("plan " + planning() + " --ranks 1 --overwrite --out /dev/null", "/dev/null: is not a plain file");
  expect_bad_input("train " + planning() + " --ranks 2 --out " + path("trace.json") + "/out",
                   "trace.json: is not a folder");
}

TEST_F(BadInput, APlanForAnotherMachineIsNotTrainedHere) {
  write_text(folder / "cluster.yaml", "gpu: a40\nnodes: 1\ngpus_per_node: 1\nintra_node: nvlink\n");
  expect_bad_input(
      "train --workload " + path("workload.yaml") + " --cluster " + path("cluster.yaml") + " --out " + path("out"),
      "the plan is for gpu 'a40' by its datasheet, which is simulated only");
  for (const std::string gpu : {"a40", "h100"})
    ASSERT_EQ(testing::run_braid("profile --analytic " + gpu + " --out " + path(gpu + ".json")).status, 0);
  expect_bad_input("train --workload " + path("workload.yaml") + " --profile " + path("a40.json") +
                       " --ranks 1 --out " + path("out"),
                   "a40.json: is of GPUs of kind 'a40', and the cluster's are CPUs; give a profile of those, or a "
                   "cluster of gpu: a40");
  expect_bad_input("plan --workload " + path("workload.yaml") + " --cluster " + path("cluster.yaml") + " --profile " +
                       path("h100.json"),
                   "h100.json: is of GPUs of kind 'h100-sxm', and the cluster's are GPUs of kind 'a40'");
  expect_bad_input("profile --crossvalidate " + path("h100.json"), "no measured point lies between two others");
}

TEST_F(BadInput, AnUnknownGpuIsNamedWithTheKnownOnes) {
  write_text(folder / "cluster.yaml", "gpu: b300\nnodes: 1\ngpus_per_node: 2\nintra_node: nvlink\n");
  expect_bad_input("plan --workload " + path("workload.yaml") + " --cluster " + path("cluster.yaml"),
                   "or one of the GPUs that are known: v100-sxm2, rtx3090, a40");
  write_text(folder / "cluster.yaml", "gpu: b300\nnodes: 1\ngpus_per_node: 2\nintra_node: pcie5\n");
  expect_bad_input("plan --workload " + path("workload.yaml") + " --cluster " + path("cluster.yaml"),
                   "unknown GPU 'b300'; known: v100-sxm2, rtx3090, a40");
  expect_bad_input("profile --analytic b300 --out " + path("p.json"), "unknown GPU 'b300'", "p.json");
  expect_bad_input("profile --analytic h100 --dtype f12 --out " + path("p.json"), "unknown data type 'f12'", "p.json");
  expect_bad_input("profile --analytic h100", "--out is missing");
  expect_bad_input("profile --analytic h100 --exposed-launch-seconds -1 --out " + path("p.json"),
                   "--exposed-launch-seconds -1 is no time a launch", "p.json");
  expect_bad_input("profile --exposed-launch-seconds 1e-6", "--exposed-launch-seconds is of derived profiles");
  expect_bad_input("profile --analytic h100 --overlap-slowdown 0.9 --out " + path("p.json"),
                   "--overlap-slowdown 0.9 is no slowdown", "p.json");
  expect_bad_input("profile --analytic h100 --clock 1.2 --out " + path("p.json"),
                   "--clock 1.2 is no share of the full frequency; give 0.1 to 1", "p.json");
  expect_bad_input("profile --analytic h100 --fit " + path("profile.json"), "give one of them");
  expect_bad_input("profile --overlap-slowdown 1", "--overlap-slowdown is of derived profiles");
  expect_bad_input("profile --attention eager", "--attention is of derived profiles");
  expect_bad_input("profile --dtype bf16", "--dtype is of derived profiles");
  expect_bad_input("profile --analytic h100 --attention linear --out " + path("p.json"),
                   "unknown attention 'linear'; known: flash, eager", "p.json");
  expect_bad_input("profile --fit " + path("profile.json"), "--out is missing");
  expect_bad_input("profile --fit " + path("profile.json") + " --out " + path("p.json"),
                   "is of no GPU with a datasheet", "p.json");
  expect_bad_input("profile --check " + path("profile.json"), "--check takes two profiles, not 1");
  expect_bad_input("profile --crossvalidate " + path("data0.jsonl"), "data0.jsonl:2: not valid JSON");
}

}  // namespace
}  // namespace braid::cli
