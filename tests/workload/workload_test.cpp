#include "workload/workload.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "workload/sample_index.h"
#include "workload/texts.h"

namespace braid::workload {
namespace {

using costmodel::Module;

constexpr std::string_view kConfig = R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 512,
  "max_position_embeddings": 256, "rms_norm_eps": 1e-05})";

/// The numbered lines that the error tests change one at a time.
const std::vector<std::string> kLines = {
    /*  1 */ "backbone: models/tiny",
    /*  2 */ "reproducible: true",
    /*  3 */ "tasks:",
    /*  4 */ "  - name: sst2",
    /*  5 */ "    dataset: data/sst2.jsonl",
    /*  6 */ "    max_length: 64",
    /*  7 */ "    on_too_long: drop",
    /*  8 */ "    adapter:",
    /*  9 */ "      type: lora",
    /* 10 */ "      r: 16",
    /* 11 */ "      alpha: 24",
    /* 12 */ "      dropout: 0.05",
    /* 13 */ "      rslora: true",
    /* 14 */ "      target_modules: [q_proj, down_proj]",
    /* 15 */ "      init_from: adapters/old",
    /* 16 */ "    global_batch_size: 32",
    /* 17 */ "    steps: 100",
    /* 18 */ "    optimizer:",
    /* 19 */ "      type: adamw",
    /* 20 */ "      lr: 3e-4",
    /* 21 */ "      weight_decay: 0.1",
    /* 22 */ "      warmup_steps: 10",
    /* 23 */ "      schedule: cosine",
    /* 24 */ "      max_grad_norm: 1.0",
    /* 25 */ "      beta1: 0.8",
    /* 26 */ "      beta2: 0.95",
    /* 27 */ "      epsilon: 1e-6",
    /* 28 */ "    seed: 7",
    /* 29 */ "    priority: -2",
    /* 30 */ "    chat: chatml",
    /* 31 */ "  - name: plan-only",
    /* 32 */ "    dataset: {lengths: {dist: lognormal, mean: 64, sigma: 0.4, max: 128}}",
    /* 33 */ "    max_length: 128",
    /* 34 */ "    adapter: {r: 8}",
    /* 35 */ "    global_batch_size: 4",
    /* 36 */ "    epochs: 3",
};

class WorkloadFile : public testing::Test {
 protected:
  WorkloadFile() {
    folder.write("models/tiny/config.json", kConfig);
    folder.write("data/sst2.jsonl", "{\"input_ids\": [1, 2]}\n");
    folder.write("adapters/old/adapter_config.json", R"({"peft_type": "LORA", "r": 16, "lora_alpha": 24,
      "use_rslora": true, "target_modules": ["q_proj", "down_proj"]})");
  }

  Workload read(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return read_workload(folder.write("workload.yaml", text));
  }

  /// What is said of the file with line `line` replaced, without the folder.
  std::string complaint(int line, const std::string& replacement) {
    std::vector<std::string> lines = kLines;
    lines.at(static_cast<std::size_t>(line - 1)) = replacement;
    return local(error_of([&] { read(lines); }));
  }

  std::string local(std::string text) const {
    const std::string prefix = folder.path().string() + "/";
    for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) {
      text.erase(at, prefix.size());
    }
    return text;
  }

  TestFolder folder;
};

TEST_F(WorkloadFile, EveryKeyIsRead) {
  const Workload workload = read(kLines);
  EXPECT_EQ(workload.file, folder / "workload.yaml");
  EXPECT_EQ(workload.backbone_reference, "models/tiny");
  EXPECT_EQ(workload.backbone_folder, folder / "models/tiny");
  EXPECT_EQ(workload.backbone.hidden, 64);
  EXPECT_EQ(workload.backbone.name, "tiny");
  EXPECT_TRUE(workload.reproducible);
  ASSERT_EQ(workload.tasks.size(), 2u);

  const Task& task = workload.tasks[0];
  EXPECT_EQ(task.name, "sst2");
  EXPECT_EQ(task.dataset, folder / "data/sst2.jsonl");
  EXPECT_FALSE(task.lengths);
  EXPECT_EQ(task.max_length, 64);
  EXPECT_EQ(task.on_too_long, OnTooLong::drop);
  EXPECT_EQ(task.adapter.rank, 16);
  EXPECT_EQ(task.adapter.alpha, 24.0);
  EXPECT_EQ(task.adapter.dropout, 0.05);
  EXPECT_TRUE(task.adapter.rank_stabilized);
  for (const Module module : costmodel::kModules) {
    EXPECT_EQ(task.adapter.has(module), module == Module::q || module == Module::down);
  }
  EXPECT_EQ(task.init_from, folder / "adapters/old");
  EXPECT_EQ(task.global_batch_size, 32);
  EXPECT_EQ(task.steps, 100);
  EXPECT_FALSE(task.epochs);
  EXPECT_EQ(task.optimizer, (Optimizer{3e-4, 0.1, 10, Schedule::cosine, 1.0, 0.8, 0.95, 1e-6}));
  EXPECT_EQ(task.seed, 7u);
  EXPECT_EQ(task.priority, -2);
  EXPECT_EQ(task.chat, ChatLayout::chatml);
}

TEST_F(WorkloadFile, BaseWeightsMayBeHeldInFewerBits) {
  std::vector<std::string> lines = kLines;
  EXPECT_EQ(read(lines).base_weights, std::nullopt);
  EXPECT_EQ(read(lines).held_weights(), costmodel::DataType::f32);
  lines[1] = "base_weights: nf4";
  const Workload workload = read(lines);
  EXPECT_EQ(workload.base_weights, costmodel::DataType::nf4);
  EXPECT_EQ(workload_from(parse_json(to_json(workload), "plan.json")).base_weights, costmodel::DataType::nf4);
  lines[1] = "base_weights: int4";
  expect_error([&] { read(lines); }, "unknown base_weights 'int4'", "valid: f32, bf16, int8, nf4");
}

TEST_F(WorkloadFile, TheObjectiveIsReadAndWritten) {
  std::vector<std::string> lines = kLines;
  EXPECT_EQ(read(lines).tasks[0].objective, Objective());
  const std::vector<std::pair<std::string, Objective>> objectives = {
      {"sft", {}},
      {"{type: sft}", {}},
      {"dpo", {ObjectiveKind::dpo, 0.1, 0}},
      {"{type: dpo, beta: 0.5, label_smoothing: 0.2}", {ObjectiveKind::dpo, 0.5, 0.2}}};
  for (const auto& [text, objective] : objectives) {
    lines[28] = "    objective: " + text;
    const Workload workload = read(lines);
    EXPECT_EQ(workload.tasks[0].objective, objective) << text;
    EXPECT_EQ(workload_from(parse_json(to_json(workload), "plan.json")).tasks[0].objective, objective) << text;
    EXPECT_EQ(workload.tasks[0].sample_tokens(), objective.pairs() ? 128 : 64);
  }
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"ppo", "unknown objective 'ppo'"},
      {"{type: sft, beta: 1}", "unknown key 'beta'"},
      {"{type: dpo, beta: 0}", "beta 0 is not usable"},
      {"{type: dpo, label_smoothing: 0.5}", "label_smoothing 0.5 is not usable"},
      {"{type: dpo, loss: ipo}", "unknown key 'loss'"}};
  for (const auto& [text, error] : bad) {
    lines[28] = "    objective: " + text;
    EXPECT_NE(error_of([&] { read(lines); }).find(error), std::string::npos) << error_of([&] { read(lines); });
  }
}

/// Of pairs both sequences are drawn, and a pair is dropped where one of them is too long.
TEST_F(WorkloadFile, WhatATaskIsEvaluatedOnIsReadAndWritten) {
  folder.write("data/held.jsonl", "{\"input_ids\": [1, 2]}\n");
  const auto evaluation = [](const std::string& text) { return "    evaluation: {" + text + "}"; };
  const std::vector<std::pair<std::string, Evaluation>> evaluations = {
      {"fraction: 0.1", {0.1, {}, 0, 0}},
      {"fraction: 0.5, every: 20, patience: 3", {0.5, {}, 20, 3}},
      {"dataset: data/held.jsonl, every: 7", {0, folder / "data/held.jsonl", 7, 0}}};
  std::vector<std::string> lines = kLines;
  EXPECT_FALSE(read(lines).tasks[0].evaluation);
  for (const auto& [text, expected] : evaluations) {
    lines[29] = evaluation(text);
    const Workload workload = read(lines);
    EXPECT_EQ(workload.tasks[0].evaluation, expected) << text;
    EXPECT_EQ(workload_from(parse_json(to_json(workload), "plan.json")), workload) << text;
  }
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "workload.yaml:30: nothing is given to evaluate on; add fraction: 0.05, or dataset: FILE"},
      {"fraction: 0", "fraction 0 is not usable; give 0 < fraction < 1"},
      {"fraction: 1", "fraction 1 is not usable"},
      {"fraction: 0.1, dataset: data/held.jsonl", "both a fraction of the data and a dataset are given"},
      {"dataset: data/none.jsonl", "data/none.jsonl: no such dataset; give a JSONL file, or fraction: 0.05"},
      {"fraction: 0.1, every: 0", "'every' is '0'; give a whole number in 1.."},
      {"fraction: 0.1, patience: -1", "'patience' is '-1'"},
      {"fraction: 0.1, eval_steps: 5", "unknown key 'eval_steps'; write every"}};
  for (const auto& [text, expected] : bad) {
    const std::string message = complaint(30, evaluation(text));
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  }
  EXPECT_NE(complaint(30, "    val_size: 0.1").find("write fraction, under a task's evaluation"), std::string::npos);
  EXPECT_NE(complaint(32, kLines[31] + "\n    evaluation: {dataset: data/held.jsonl}").find("a task of lengths has no"),
            std::string::npos);
}

TEST_F(WorkloadFile, LengthsOfPairsAreThoseOfBothSequences) {
  Task task = read(kLines).tasks[1];
  task.lengths->samples = 50;
  task.objective.kind = ObjectiveKind::dpo;
  const std::vector<SampleSize> pairs = sample_sizes(task);
  Task twice = read(kLines).tasks[1];
  twice.lengths->samples = 100;
  const std::vector<SampleSize> singles = sample_sizes(twice);
  ASSERT_EQ(pairs.size(), 50U);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    EXPECT_EQ(pairs[i].chosen, singles[2 * i].tokens);
    EXPECT_EQ(pairs[i].tokens, singles[2 * i].tokens + singles[2 * i + 1].tokens);
    EXPECT_EQ(pairs[i].supervised, pairs[i].tokens - 2);
  }
  task.max_length = 70, task.on_too_long = OnTooLong::drop;
  for (const SampleSize& pair : sample_sizes(task)) EXPECT_LE(std::max(pair.chosen, pair.tokens - pair.chosen), 70);
}

/// Every method by its keys, and back from a plan.
TEST_F(WorkloadFile, AdaptersOfEveryMethodAreReadAndWritten) {
  using costmodel::AdapterMethod;
  const std::vector<std::pair<std::string, AdapterMethod>> adapters = {
      {"{type: dora, r: 4, dropout: 0.1}", AdapterMethod::dora},
      {"{type: vera, r: 32, target_modules: all-linear}", AdapterMethod::vera},
      {"{type: ia3}", AdapterMethod::ia3},
      {"{type: prefix_tuning, num_virtual_tokens: 5}", AdapterMethod::prefix_tuning},
      {"{type: bottleneck, r: 8, mh_adapter: false}", AdapterMethod::bottleneck},
      {"{type: diff_pruning, r: 1}", AdapterMethod::diff_pruning}};
  for (const auto& [text, method] : adapters) {
    const std::filesystem::path file = folder / "method.yaml";
    const auto with = [&](const std::string& adapter, const std::string& more = "") {
      write_file(file,
                 fmt::format("backbone: llama2-7b\ntasks:\n  - name: t\n    dataset: {{lengths: {{dist: constant, "
                             "mean: 32}}}}\n    max_length: 32\n    adapter: {}\n    global_batch_size: 2\n    "
                             "steps: 1\n{}",
                             adapter, more));
      return read_workload(file);
    };
    const Workload workload = with(text);
    EXPECT_EQ(workload.tasks[0].adapter.method, method) << text;
    EXPECT_EQ(workload_from(parse_json(to_json(workload), "plan.json")).tasks, workload.tasks) << text;
    expect_error([&] { with(text.substr(0, text.size() - 1) + ", alhpa: 3}"); }, "unknown key 'alhpa'");
  }
  const std::filesystem::path file = folder / "bad.yaml";
  const auto refusal = [&](const std::string& adapter, const std::string& more = "") {
    write_file(file, fmt::format("backbone: llama2-7b\ntasks:\n  - name: t\n    dataset: {{lengths: {{dist: constant, "
                                 "mean: 32}}}}\n    max_length: 4090\n    adapter: {}\n    global_batch_size: 2\n    "
                                 "steps: 1\n{}",
                                 adapter, more));
    return error_of([&] { read_workload(file); });
  };
  EXPECT_PRED2(contains, refusal("{type: prefix_tuning, num_virtual_tokens: 20}"),
               "max_length 4090 and the prefix's 20 tokens are more than the 4096 positions");
  EXPECT_PRED2(contains, refusal("{type: ia3, target_modules: [up_proj], feedforward_modules: [up_proj]}"),
               "feedforward_modules names up_proj, whose input other modules read too");
  EXPECT_PRED2(contains, refusal("{type: diff_pruning, r: 3000}"), "more than half of its weight");
  EXPECT_PRED2(contains, refusal("{type: bottleneck, r: 8, mh_adapter: false, output_adapter: false}"),
               "set mh_adapter or output_adapter");
  EXPECT_PRED2(contains, refusal("{type: ia3}", "    optimizer: {loraplus_lr_ratio: 4}\n"),
               "an adapter of type ia3 has no B to learn faster");
}

TEST_F(WorkloadFile, WhatIsLeftOutHasItsDefault) {
  std::vector<std::string> lines = kLines;
  lines[1] = "";
  const Workload workload = read(lines);
  EXPECT_FALSE(workload.reproducible);
  const Task& task = workload.tasks[1];
  EXPECT_TRUE(task.dataset.empty());
  EXPECT_EQ(task.lengths, (LengthDistribution{LengthDistribution::Kind::lognormal, 64, 0.4, 2, 128, 10000}));
  EXPECT_EQ(task.on_too_long, OnTooLong::error);
  EXPECT_EQ(task.adapter.alpha, 16.0);
  EXPECT_EQ(task.adapter.dropout, 0.0);
  EXPECT_FALSE(task.adapter.rank_stabilized);
  for (const Module module : costmodel::kModules) {
    const bool attention = module == Module::q || module == Module::k || module == Module::v || module == Module::o;
    EXPECT_EQ(task.adapter.has(module), attention);
  }
  EXPECT_TRUE(task.init_from.empty());
  EXPECT_EQ(task.epochs, 3);
  EXPECT_EQ(task.optimizer, (Optimizer{2e-4, 0.0, 0, Schedule::constant, 0.0, 0.9, 0.999, 1e-8}));
  EXPECT_EQ(task.seed, 0u);
  EXPECT_EQ(task.priority, 0);
  EXPECT_FALSE(task.chat);
}

TEST_F(WorkloadFile, EveryBuiltInShapeMayBeNamed) {
  for (const std::string& name : costmodel::builtin_backbone_names()) {
    std::vector<std::string> lines = kLines;
    lines[0] = "backbone: " + name;
    const Workload workload = read(lines);
    EXPECT_TRUE(workload.backbone_folder.empty());
    EXPECT_EQ(workload.backbone, costmodel::builtin_backbone(name));
  }
}

TEST_F(WorkloadFile, PathsCountFromTheFileWhereverTheProgramRuns) {
  const Workload absolute = read(kLines);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder / "models");
  const Workload relative = read_workload("../workload.yaml");
  std::filesystem::current_path(before);
  EXPECT_EQ(relative, absolute);
}

TEST_F(WorkloadFile, SurvivesTheWayThroughJson) {
  for (const std::string dataset :
       {"{lengths: {dist: lognormal, mean: 63.7, sigma: 0.1, max: 100}}",
        "{lengths: {dist: constant, mean: 100, samples: 7}}", "{lengths: {dist: uniform, min: 3, max: 90}}"}) {
    std::vector<std::string> lines = kLines;
    lines[31] = "    dataset: " + dataset;
    lines[19] = "      lr: 0.1234567890123456789";
    const Workload workload = read(lines);
    const std::string json = to_json(workload);
    const Workload back = workload_from(parse_json(json, "plan.json"));
    EXPECT_EQ(back, workload);
    EXPECT_EQ(to_json(back), json);
  }
}

TEST_F(WorkloadFile, EveryBuiltInShapeSurvivesTheWayThroughJson) {
  Workload workload = read(kLines);
  for (const std::string& name : costmodel::builtin_backbone_names()) {
    workload.backbone = costmodel::builtin_backbone(name);
    EXPECT_EQ(workload_from(parse_json(to_json(workload), "plan.json")), workload) << name;
  }
}

TEST_F(WorkloadFile, RopeHeadNormsAndWindowsSurviveTheWayThroughJson) {
  Workload workload = read(kLines);
  workload.backbone.rope_scaling = {costmodel::RopeKind::yarn, 4.0, 1.0, 1.0, 64.0, 16.0, 2.0, false, 1.25};
  workload.backbone.architecture = costmodel::Architecture::qwen3;
  workload.backbone.qk_norm = true;
  workload.backbone.sliding_window = 4096;
  EXPECT_EQ(workload_from(parse_json(to_json(workload), "plan.json")), workload);
}

TEST_F(WorkloadFile, PlansFromBeforeRopeHadKindsAreRead) {
  Workload workload = read(kLines);
  std::string json = to_json(workload);
  const auto replace = [&](const std::string& what, const std::string& by) {
    ASSERT_NE(json.find(what), std::string::npos) << what;
    json.replace(json.find(what), what.size(), by);
  };
  replace(R"("kind": "plain")", R"("llama3": true)");
  workload.backbone.rope_scaling.kind = costmodel::RopeKind::llama3;
  EXPECT_EQ(workload_from(parse_json(json, "plan.json")), workload);
  replace(R"("llama3": true)", R"("llama3": false)");
  workload.backbone.rope_scaling.kind = costmodel::RopeKind::plain;
  EXPECT_EQ(workload_from(parse_json(json, "plan.json")), workload);
}

TEST_F(WorkloadFile, NoSampleIsLongerThanTheSlidingWindow) {
  std::string config = read_file(golden("mistral") / "config.json");
  folder.write("models/tiny/config.json", config);
  EXPECT_EQ(complaint(6, "    max_length: 38"),
            "workload.yaml:6: max_length 38 is longer than this backbone's sliding_window, which is not supported; "
            "give one up to 37, where the window hides nothing");
  std::vector<std::string> lines = kLines;
  lines[5] = "    max_length: 37";
  lines.resize(30);
  EXPECT_EQ(read(lines).backbone.sliding_window, 37);
}

TEST_F(WorkloadFile, AModelOfTheHubsCacheIsItsSnapshot) {
  folder.write("models/models--org--small/snapshots/abc/config.json", read_file(golden("mistral") / "config.json"));
  folder.write("models/models--org--small/refs/main", "abc");
  std::vector<std::string> lines = kLines;
  lines[0] = "backbone: models/models--org--small";
  lines[5] = "    max_length: 37";
  lines.resize(30);
  const Workload workload = read(lines);
  EXPECT_EQ(workload.backbone_folder, folder / "models/models--org--small/snapshots/abc");
  EXPECT_EQ(workload.backbone.name, "small");
}

TEST_F(WorkloadFile, TheEmbeddedFormNeedsNoFiles) {
  const Workload workload = read(kLines);
  std::filesystem::remove_all(folder.path());
  EXPECT_EQ(workload_from(parse_json(to_json(workload), "plan.json")), workload);
}

TEST_F(WorkloadFile, TheEmbeddedFormIsCheckedLikeTheFile) {
  std::string json = to_json(read(kLines));
  json.replace(json.find("\"r\": 16"), 7, "\"r\": 0");
  const std::string message = error_of([&] { workload_from(parse_json(json, "plan.json")); });
  EXPECT_TRUE(contains(message, "plan.json:")) << message;
  EXPECT_TRUE(contains(message, "rank 0 is not usable; give r >= 1")) << message;
}

struct Complaint {
  int line;
  std::string replacement;
  std::string message;
};

TEST_F(WorkloadFile, EveryBadValueIsNamedWithItsLineAndARemedy) {
  const std::vector<Complaint> complaints = {
      {2, "reproducible: perhaps", "'reproducible' is 'perhaps'; give true or false"},
      {2, "reprodusible: true", "unknown key 'reprodusible'; valid keys: backbone, base_weights, reproducible, tasks"},
      {4, "  - name: a/b",
       "task name 'a/b' is not usable; give 1 to 128 letters, digits, '.', '_' or '-' (it names a folder)"},
      {4, "  - name: ..",
       "task name '..' is not usable; give 1 to 128 letters, digits, '.', '_' or '-' (it names a folder)"},
      {5, "    dataset: data/none.jsonl",
       "data/none.jsonl: no such dataset; give a JSONL file, or {lengths: {dist: , ...}} to plan without data"},
      {6, "    max_length: 1", "max_length 1 is not usable; give one in 2..256, the positions of this backbone"},
      {6, "    max_length: 257", "max_length 257 is not usable; give one in 2..256, the positions of this backbone"},
      {6, "    max_length: long", "'max_length' is 'long'; give a whole number"},
      {7, "    on_too_long: cut", "unknown on_too_long 'cut'; valid: error, truncate, drop"},
      {9, "      type: mystery",
       "unknown adapter type 'mystery'; valid: lora, dora, vera, ia3, prefix_tuning, bottleneck, diff_pruning"},
      {9, "      kind: lora",
       "unknown key 'kind'; valid keys: type, r, alpha, dropout, rslora, target_modules, rank_pattern, "
       "alpha_pattern, init_from"},
      {10, "      r: 0", "rank 0 is not usable; give r >= 1"},
      {10, "      r: -4", "rank -4 is not usable; give r >= 1"},
      {10, "      r: 1000000", "rank 1000000 is not usable; give r <= 65536"},
      {11, "      alpha: 0", "alpha 0 is not usable; give alpha above 0"},
      {12, "      dropout: 1.0", "dropout 1 is not usable; give 0 <= dropout < 1"},
      {12, "      dropout: -0.5", "dropout -0.5 is not usable; give 0 <= dropout < 1"},
      {13, "      rslora: 1", "'rslora' is '1'; give true or false"},
      {14, "      target_modules: [q_proj, query]",
       "unknown module 'query'; valid: q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj"},
      {14, "      target_modules: [q_proj, q_proj]", "module 'q_proj' is given twice; keep one"},
      {14, "      target_modules: []", "target_modules is empty; name at least one module, such as q_proj"},
      {14, "      target_modules: q_proj",
       "the regular expression 'q_proj' matches no whole name, such as model.layers.0.self_attn.q_proj; begin it with "
       ".* "
       "perhaps, or give a list of q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj"},
      {14, "      target_modules: \"(q_proj\"",
       "target_modules '(q_proj' is no regular expression: missing closing parenthesis at character 8; give a list of "
       "q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj, or all-linear"},
      {11, "      lora_alpha: 8", "unknown key 'lora_alpha'; write alpha"},
      {28, "    lora_alpha: 8", "unknown key 'lora_alpha'; write alpha, under a task's adapter"},
      {2, "cutoff_len: 8", "unknown key 'cutoff_len'; write max_length, in each of the tasks"},
      {15, "      init_from: adapters/none",
       "adapters/none holds no adapter_config.json; give the folder of a PEFT adapter"},
      {16, "    global_batch_size: 0", "'global_batch_size' is '0'; give a whole number in 1..1000000"},
      {17, "    steps: 0", "'steps' is '0'; give a whole number in 1..1000000000"},
      {17, "    steps: 5\n    epochs: 2", "both steps and epochs are given; keep one"},
      {19, "      type: sgd", "unknown optimizer 'sgd'; valid: adamw"},
      {20, "      lr: -1", "'lr' is '-1'; give lr >= 0"},
      {20, "      lr: fast", "'lr' is 'fast'; give lr >= 0"},
      {20, "      learning_rate: 1", "unknown key 'learning_rate'; write lr"},
      {21, "      weight_decay: -1", "'weight_decay' is '-1'; give weight_decay >= 0"},
      {22, "      warmup_steps: 0.5", "'warmup_steps' is '0.5'; give warmup_steps >= 0"},
      {23, "      schedule: wavy", "unknown schedule 'wavy'; valid: linear, cosine, constant"},
      {24, "      max_grad_norm: -1", "'max_grad_norm' is '-1'; give max_grad_norm >= 0"},
      {25, "      beta1: 1", "beta1 1 is not usable; give 0 <= beta1 < 1"},
      {26, "      beta2: -1", "beta2 -1 is not usable; give 0 <= beta2 < 1"},
      {27, "      epsilon: 0", "epsilon 0 is not usable; give epsilon above 0"},
      {28, "    seed: -1", "'seed' is '-1'; give seed >= 0"},
      {29, "    priority: high", "'priority' is 'high'; give a whole number"},
      {30, "    chat: alpaca", "unknown chat 'alpaca'; valid: chatml, llama3"},
      {30, "    layout: chatml",
       "unknown key 'layout'; valid keys: name, dataset, max_length, on_too_long, adapter, global_batch_size, steps, "
       "epochs, optimizer, seed, priority, chat, objective, evaluation, search"},
      {31, "  - name: sst2", "task name 'sst2' is taken (line 4); give every task a name of its own"},
      {32, "    dataset: {file: x}", "unknown key 'file'; valid keys: lengths"},
      {32, "    dataset: {lengths: {dist: normal, mean: 64}}",
       "unknown dist 'normal'; valid: lognormal, constant, uniform"},
      {32, "    dataset: {lengths: {dist: lognormal, mean: 64, std: 1}}",
       "unknown key 'std'; valid keys: dist, mean, sigma, skewness, min, max, samples"},
      {32, "    dataset: {lengths: {dist: lognormal, mean: 64, sigma: -1}}", "'sigma' is '-1'; give a number in 0..10"},
      {32, "    dataset: {lengths: {dist: lognormal, mean: 64}}", "'sigma' is missing; add 'sigma'"},
      {32, "    dataset: {lengths: {dist: lognormal, mean: 64, sigma: 1, skewness: 2}}",
       "sigma and skewness are both given, and one tells the other; remove one of them"},
      {32, "    dataset: {lengths: {dist: lognormal, mean: 64, skewness: -2}}",
       "'skewness' is '-2'; give a number in 0.001..1000"},
      {32, "    dataset: {lengths: {dist: constant, mean: 9, skewness: 1}}",
       "only a lognormal distribution takes skewness; remove it, or give dist: lognormal"},
      {32, "    dataset: {lengths: {dist: constant, mean: 1}}", "'mean' is '1'; give a number in 2..128"},
      {32, "    dataset: {lengths: {dist: constant, mean: 9, sigma: 1}}",
       "only a lognormal distribution takes sigma; remove it, or give dist: lognormal"},
      {32, "    dataset: {lengths: {dist: uniform, mean: 9}}",
       "a uniform distribution takes no mean; give min and max"},
      {32, "    dataset: {lengths: {dist: uniform, min: 9, max: 8}}", "'max' is '8'; give max >= 9"},
      {32, "    dataset: {lengths: {dist: uniform, max: 129}}",
       "lengths up to 129 are longer than max_length 128; lower max, or set on_too_long to truncate or drop"},
      {32, "    dataset: {lengths: {dist: uniform, samples: 0}}",
       "'samples' is '0'; give a whole number in 1..100000000"},
      {36, "    weeks: 3",
       "unknown key 'weeks'; valid keys: name, dataset, max_length, on_too_long, adapter, global_batch_size, steps, "
       "epochs, optimizer, seed, priority, chat, objective, evaluation, search"},
  };
  for (const Complaint& expected : complaints) {
    const std::string message = complaint(expected.line, expected.replacement);
    const int line = expected.line + (contains(expected.replacement, "\n") ? 1 : 0);
    EXPECT_EQ(message, fmt::format("workload.yaml:{}: {}", line, expected.message)) << expected.replacement;
  }
}

TEST_F(WorkloadFile, AnUnknownBackboneListsTheKnownOnes) {
  const std::string message = complaint(1, "backbone: llama9");
  EXPECT_TRUE(message.starts_with("workload.yaml:1: unknown backbone 'llama9'")) << message;
  for (const std::string& name : costmodel::builtin_backbone_names()) EXPECT_TRUE(contains(message, name));
}

TEST_F(WorkloadFile, EveryMissingKeyIsNamed) {
  const std::vector<std::pair<int, std::string>> missing = {
      {1, "backbone"}, {5, "dataset"}, {6, "max_length"}, {10, "r"}, {16, "global_batch_size"}};
  for (const auto& [line, key] : missing) {
    const std::string message = complaint(line, "");
    EXPECT_TRUE(contains(message, fmt::format("'{}' is missing; add '{}'", key, key))) << message;
    EXPECT_TRUE(message.starts_with("workload.yaml:")) << message;
  }
  EXPECT_EQ(complaint(17, ""), "workload.yaml:4: neither steps nor epochs is given; add steps or epochs");
}

TEST_F(WorkloadFile, NoTasksIsAnError) {
  EXPECT_EQ(local(error_of([&] {
              read({"backbone: models/tiny", "tasks: []"});
            })),
            "workload.yaml:2: 'tasks' is empty; give at least one task");
  EXPECT_EQ(local(error_of([&] { read({}); })), "workload.yaml:1: the file is empty; give backbone and tasks");
}

}  // namespace
}  // namespace braid::workload
