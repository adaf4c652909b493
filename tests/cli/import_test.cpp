#include "cli/workspace.h"

namespace braid::cli {
namespace {

using testing::Outcome;
using testing::read_text;
using testing::run_braid;
using testing::write_text;

/// Files of other systems beside data of theirs.
class ImportedRun : public testing::Workspace {
 protected:
  void SetUp() override {
    Workspace::SetUp();
    write_text(folder / "data/dataset_info.json",
               "{\"quiz\": {\"file_name\": \"quiz.json\"}, \"chats\": {\"file_name\": \"chats.jsonl\", \"formatting\": "
               "\"sharegpt\"},\n"
               "\"odd\": {\"file_name\": \"quiz.json\", \"columns\": {\"prompt\": \"q\"}}}");
    std::string rows;
    for (int i = 0; i < 10; ++i)
      rows += (i == 0 ? "" : ",") + std::string("{\"instruction\": \"Say ") + std::to_string(i) + "\", \"input\": \"" +
              (i % 2 ? "now" : "") + "\", \"output\": \"" + std::to_string(i) + "\"}";
    write_text(folder / "data/quiz.json", "[" + rows + "]");
    write_text(
        folder / "data/chats.jsonl",
        "{\"conversations\": [{\"from\": \"human\", \"value\": \"Hi\"}, {\"from\": \"gpt\", \"value\": \"Ho\"}]}\n");
  }

  std::string imported(const std::string& text, const std::string& more = "") {
    write_text(folder / "theirs.yaml", text);
    const Outcome outcome =
        run_braid("import --overwrite " + path("theirs.yaml") + " --out " + path("ours.yaml") + more);
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    told = outcome.text;
    return read_text(folder / "ours.yaml");
  }
  void refused(const std::string& text, const std::string& message) {
    write_text(folder / "theirs.yaml", text);
    const Outcome outcome = run_braid("import --overwrite " + path("theirs.yaml") + " --out " + path("ours.yaml"));
    EXPECT_EQ(outcome.status, 2) << outcome.text;
    EXPECT_NE(outcome.text.find(message), std::string::npos) << outcome.text;
  }
  static void expect_lines(const std::string& text, std::initializer_list<const char*> lines) {
    for (const char* line : lines) EXPECT_NE(text.find(line), std::string::npos) << line << "\nin\n" << text;
  }

  const std::string factory =
      "model_name_or_path: " BRAID_SOURCE_DIR
      "/tests/golden/llama\nstage: sft\nfinetuning_type: lora\nlora_rank: 4\nlora_target: q_proj,v_proj\ndataset: "
      "quiz\n"
      "cutoff_len: 32\noutput_dir: saves/quiz-lora\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 2\n"
      "learning_rate: 1.0e-4\nnum_train_epochs: 2.0\nlr_scheduler_type: cosine\nwarmup_ratio: 0.1\nbf16: "
      "true\nlogging_steps: 10\n";
  std::string told;
};

/// What the user has stays: a file that rows are read of in any case, another unless --overwrite is given.
TEST_F(ImportedRun, LeavesTheUsersRowsAlone) {
  write_text(folder / "theirs.yaml", factory);
  write_text(folder / "quiz.jsonl", "mine\n");
  const std::string import = "import " + path("theirs.yaml") + " --out " + path("ours.yaml");
  expect_bad_input(import, "quiz.jsonl: exists, and rows laid out anew would take its name");
  EXPECT_EQ(read_text(folder / "quiz.jsonl"), "mine\n");
  EXPECT_FALSE(std::filesystem::exists(folder / "ours.yaml"));
  ASSERT_EQ(run_braid(import + " --overwrite").status, 0);
  EXPECT_NE(read_text(folder / "quiz.jsonl"), "mine\n");
  std::filesystem::remove(folder / "ours.yaml");
  EXPECT_EQ(run_braid(import).status, 0) << "the same rows are there already";

  const std::string rows = read_text(folder / "quiz.jsonl"), plain = "{\"instruction\": \"a\", \"output\": \"b\"}\n";
  write_text(folder / "data/dataset_info.json", "{\"quiz\": {\"file_name\": \"quiz.jsonl\"}}");
  write_text(folder / "data/quiz.jsonl", plain);
  expect_bad_input("import --overwrite " + path("theirs.yaml") + " --out " + path("data/ours.yaml"),
                   "quiz.jsonl: is read, and would be overwritten");
  EXPECT_EQ(read_text(folder / "data/quiz.jsonl"), plain);
  expect_bad_input("import --overwrite " + path("theirs.yaml") + " --out " + path("theirs.yaml"),
                   "is a file that is imported");
  write_text(folder / "data/quiz.jsonl", plain + "{\"instructions\": \"a\", \"output\": \"b\"}\n");
  expect_bad_input("import --overwrite " + path("theirs.yaml") + " --out " + path("ours.yaml"),
                   "row 2 has no text 'instruction'");
}

TEST_F(ImportedRun, OfLlamaFactory) {
  const std::string text = imported(factory + "val_size: 0.2\neval_steps: 2\ntemplate: llama3\nuse_rslora: true\n");
  expect_lines(text,
               {"- name: \"quiz-lora\"", "dataset: \"quiz.jsonl\"", "max_length: 32", "on_too_long: truncate",
                "global_batch_size: 4", "epochs: 2",
                "adapter: {type: lora, r: 4, alpha: 8, dropout: 0, rslora: true, target_modules: [q_proj, v_proj]}",
                // 8 rows in batches of 4, twice: 4 steps, of which a tenth, rounded up.
                "lr: 0.0001", "warmup_steps: 1", "schedule: cosine", "max_grad_norm: 1",
                "evaluation: {fraction: 0.2, every: 2}", "seed: 42"});
  expect_lines(told, {"changes no training and was not taken: bf16, logging_steps",
                      "template 'llama3' may add a system message"});
  // Rows are turns, as its templates have them.
  const std::string rows = read_text(folder / "quiz.jsonl");
  EXPECT_NE(rows.find("{\"role\":\"user\",\"content\":\"Say 1\\nnow\"},{\"role\":\"assistant\",\"content\":\"1\"}"),
            std::string::npos)
      << rows;
  EXPECT_EQ(std::ranges::count(rows, '\n'), 10);

  EXPECT_NE(imported(factory + "max_samples: 3\n").find("epochs: 2"), std::string::npos);
  EXPECT_EQ(std::ranges::count(read_text(folder / "quiz.jsonl"), '\n'), 3);
  std::string chats = factory;
  chats.replace(chats.find("dataset: quiz"), 13, "dataset: chats");
  EXPECT_NE(imported(chats).find("data/chats.jsonl\""), std::string::npos) << "as they stand";

  refused(factory + "quantization_bit: 4\n", "theirs.yaml:17: quantization_bit of LLaMA-Factory is not supported");
  const auto with = [&](const std::string& line, const std::string& other) {
    std::string changed = factory;
    return changed.replace(changed.find(line), line.size(), other);
  };
  refused(with("batch_size: 2", "batch_size: 0"), "theirs.yaml:9: 'per_device_train_batch_size'");
  refused(with("cutoff_len: 32", "cutoff_len: -1"), "theirs.yaml:7: 'cutoff_len'");
  refused(with("epochs: 2.0", "epochs: 0"), "task 'quiz-lora' takes no step");
  refused(factory + "surprise: 4\n", "does not know what surprise means");
  refused(factory + "neftune_noise_alpha: 5\n", "neftune_noise_alpha");
  std::string odd = factory;
  odd.replace(odd.find("dataset: quiz"), 13, "dataset: odd");
  refused(odd, "columns of a dataset is not supported");
  odd.replace(odd.find("dataset: odd"), 12, "dataset: quiz,chats");
  refused(odd, "several datasets are mixed");
}

TEST_F(ImportedRun, OfAxolotl) {
  const std::string axolotl =
      "base_model: " BRAID_SOURCE_DIR
      "/tests/golden/llama\ndatasets:\n  - path: data/quiz.json\n    type: alpaca\nadapter: lora\nlora_r: "
      "8\nlora_alpha: 16\n"
      "lora_target_linear: true\nsequence_len: 48\nmicro_batch_size: 2\ngradient_accumulation_steps: 1\nnum_epochs: 1\n"
      "optimizer: adamw_bnb_8bit\nlearning_rate: 0.0002\nwarmup_steps: 3\nval_set_size: 0.1\nevals_per_epoch: "
      "4\noutput_dir: ./out\n";
  const std::string text = imported(axolotl + "flash_attention: true\nload_in_8bit: false\n");
  expect_lines(
      text, {"- name: \"out\"", "dataset: \"quiz.alpaca.jsonl\"", "target_modules: all-linear", "r: 8, alpha: 16",
             "global_batch_size: 2", "warmup_steps: 3", "schedule: cosine", "evaluation: {fraction: 0.1, every: 1}"});
  expect_lines(told, {"AdamW's state is held in full precision", "not taken: flash_attention"});
  expect_lines(read_text(folder / "quiz.alpaca.jsonl"),
               {"further context. Write a response that appropriately completes the request.\\n\\n### "
                "Instruction:\\nSay 1\\n\\n### "
                "Input:\\nnow\\n\\n### Response:\\n\",\"completion\":\"1\"}"});
  refused(axolotl + "load_in_4bit: true\n", "load_in_4bit of axolotl is not supported");
  refused(axolotl + "sample_packing: true\n", "sample_packing of axolotl is not supported");
  std::string quantized = axolotl;
  quantized.replace(quantized.find("adapter: lora"), 13, "adapter: qlora");
  refused(quantized, "theirs.yaml:5: adapter 'qlora' is not supported; give adapter: lora and leave load_in_4bit out");
}

TEST_F(ImportedRun, OfMlora) {
  const std::string mlora =
      "dispatcher: {name: default, concurrency_num: 2}\ndatasets:\n  - {name: d, data: data0.jsonl, prompt: "
      "prompt.yaml, prompt_type: instruction, preprocess: shuffle}\n"
      "adapters:\n  - {name: a, type: lora, path: adapters/a, optimizer: adamw, lr: 3e-4, r: 4, alpha: 8, dropout: "
      "0.05, target_modules: {q_proj: true, k_proj: false, v_proj: true}}\n"
      "  - {name: b, type: dora, path: adapters/b, optimizer: adamw, lr: 1e-4, r: 2, alpha: 4, dropout: 0, "
      "target_modules: {q_proj: true}}\n"
      "tasks:\n  - {type: train, name: one, adapter: a, dataset: d, batch_size: 4, mini_batch_size: 4, num_epochs: 2, "
      "cutoff_len: 16, save_step: 100}\n"
      "  - {type: train, name: two, adapter: b, dataset: d, batch_size: 2, mini_batch_size: 2, num_epochs: 1, "
      "cutoff_len: 16, save_step: 100}\n";
  const std::string text = imported(mlora, " --backbone " BRAID_SOURCE_DIR "/tests/golden/llama");
  expect_lines(text, {"- name: \"one\"",
                      "adapter: {type: lora, r: 4, alpha: 8, dropout: 0.05, target_modules: [q_proj, v_proj]}",
                      "global_batch_size: 4", "epochs: 2", "lr: 0.0003, weight_decay: 0.01, schedule: constant",
                      "- name: \"two\"", "{type: dora, r: 2"});
  EXPECT_EQ(told.find("before it can be planned"), std::string::npos) << told;
  refused(mlora, "names no model; give its folder with --backbone");
  // What comes out is what braid reads.
  write_text(folder / "gpu.yaml", "gpu: a40\nnodes: 1\ngpus_per_node: 1\n");
  const Outcome planned =
      run_braid("plan --quiet --workload " + path("ours.yaml") + " --cluster " + path("gpu.yaml") + " --policy mlora");
  EXPECT_EQ(planned.status, 0) << planned.text;
  refused("a: 1\n", "is no training file that braid knows");
}

TEST_F(ImportedRun, OfLobra) {
  const auto task = [](const std::string& data, const std::string& more) {
    return "{\"dataset_name\": \"" + data +
           "\", \"global_batch_size\": 4, \"context_length\": 16, \"steps\": 3, \"epochs\": 2, \"rank\": 4, "
           "\"lora_alpha\": 16" +
           more + "}";
  };
  const auto file = [](const std::string& tasks, const std::string& variant = "canonical", int count = 2) {
    return "{\"variant\": \"" + variant + "\", \"train_task_num\": " + std::to_string(count) + ", \"task\": [" + tasks +
           "]}";
  };
  std::string rows;
  for (int i = 0; i < 8; ++i) rows += "{\"content\": \"row " + std::to_string(i) + "\"}\n";
  write_text(folder / "data/news/news.json", rows);
  write_text(folder / "data/mails/mails.jsonl", "{\"text\": \"a mail\"}\n{\"text\": \"another\"}\n");
  const std::string news =
      task("news", ", \"json_key\": \"content\", \"target_modules\": [\"q_proj\", \"dense_h_to_4h\"]");
  const std::string mails =
      task("mails", ", \"json_key\": \"text\", \"target_modules\": [\"o_proj\", \"dense_4h_to_h\"]");
  const std::string backbone = " --backbone " BRAID_SOURCE_DIR "/tests/golden/llama";
  const std::string text = imported(file(news + ", " + mails), backbone + " --lr 1e-4");
  expect_lines(text,
               {"- name: \"news\"", "dataset: \"news-content.jsonl\"", "max_length: 16", "global_batch_size: 4",
                "steps: 6", "adapter: {type: lora, r: 4, alpha: 16, target_modules: [q_proj, gate_proj, up_proj]}",
                "{type: adamw, weight_decay: 0, schedule: constant, lr: 0.0001}", "- name: \"mails\"",
                "data/mails/mails.jsonl", "target_modules: [o_proj, down_proj]"});
  EXPECT_NE(told.find("dense_h_to_4h: each of the products that LobRA joins has an A of its own here"),
            std::string::npos)
      << told;
  EXPECT_EQ(told.find("before it can be planned"), std::string::npos) << told;
  expect_lines(read_text(folder / "news-content.jsonl"), {"{\"text\":\"row 0\"}\n{\"text\":\"row 1\"}\n"});

  const std::string fused = task("mails", ", \"target_modules\": [\"qkv_proj\", \"o_proj\"]");
  expect_lines(imported(file(fused, "fused", 1), backbone + " --lr 1e-4"),
               {"target_modules: [q_proj, k_proj, v_proj, o_proj]"});
  const auto is_refused = [&](const std::string& theirs, const std::string& more, const std::string& message) {
    write_text(folder / "theirs.yaml", theirs);
    const Outcome outcome =
        run_braid("import --overwrite " + path("theirs.yaml") + " --out " + path("ours.yaml") + backbone + more);
    EXPECT_EQ(outcome.status, 2) << outcome.text;
    EXPECT_NE(outcome.text.find(message), std::string::npos) << outcome.text;
  };
  is_refused(file(news + ", " + mails), "", "the file of task news names no learning rate; give it with --lr");
  is_refused(file(news + ", " + mails), " --lr 0", "--lr 0: must be positive");
  is_refused(file(news), " --lr 1", "says 2 tasks, and there are 1");
  is_refused(file(fused, "canonical", 1), " --lr 1", "LobRA has no module qkv_proj in variant canonical");
  is_refused(file(task("none", ", \"target_modules\": [\"q_proj\"]"), "canonical", 1), " --lr 1",
             "there is no data/none/none.json beside the file's folder");
  is_refused(file(task("news", ", \"target_modules\": [\"q_proj\"]"), "canonical", 1), " --lr 1",
             "row 1 has no text 'text'; give json_key the name of its text");
  is_refused(file(task("mails", ", \"target_modules\": [\"q_proj\"], \"seed\": 3"), "canonical", 1), " --lr 1",
             "braid does not know what seed means in a file of LobRA");
  is_refused(file(task("", ", \"target_modules\": [\"q_proj\"]"), "canonical", 1), " --lr 1",
             "the task has no dataset");
  is_refused(file("", "canonical", 0), " --lr 1", "there is no task");
  is_refused(factory, " --lr 1", "--lr: every file names its learning rates; leave it out");
}

}  // namespace
}  // namespace braid::cli
