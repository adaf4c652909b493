#pragma once

#include <algorithm>

#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/testing.h"

namespace braid::cli::testing {

/// A folder with a small workload of three tasks on the golden Llama backbone, and a made-up profile. Removed at the
/// end.
class Workspace : public ::testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() / ("braid_cli_" + std::to_string(::getpid()) + "_" +
                                                       ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder);
    for (int task = 0; task < 3; ++task)
      write_text(folder / ("data" + std::to_string(task) + ".jsonl"), dataset(12 + 3 * task, 6 + 9 * task));
    use_backbone(std::filesystem::path(BRAID_SOURCE_DIR) / "tests/golden/llama");
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  /// Sequences that count upwards in steps, so that the next token can be learned.
  static std::string dataset(int samples, int length) {
    std::string text;
    for (int i = 0; i < samples; ++i) {
      text += "{\"input_ids\": [";
      for (int t = 0; t < length + i % 4; ++t) text += (t == 0 ? "" : ", ") + std::to_string((7 * i + 3 * t) % 150);
      text += "]}\n";
    }
    return text;
  }

  /// Writes the workload and the profile for another one.
  void use_backbone(const std::filesystem::path& backbone) const {
    write_text(folder / "workload.yaml", workload(backbone));
    std::vector<costmodel::AdapterShape> adapters;
    for (const std::int64_t rank : {2, 4, 6}) {
      costmodel::AdapterShape adapter;
      adapter.rank = rank;
      adapter.dropout = rank == 4 ? 0.1 : 0;
      for (const auto module : {costmodel::Module::q, costmodel::Module::k, costmodel::Module::v, costmodel::Module::o})
        adapter.targets[static_cast<std::size_t>(module)] = true;
      adapters.push_back(adapter);
    }
    write_text(folder / "profile.json",
               costmodel::to_json(made_up_profile(costmodel::read_backbone(backbone), adapters)));
  }

  std::string workload(const std::filesystem::path& backbone = BRAID_SOURCE_DIR "/tests/golden/llama") const {
    std::string text = "backbone: " + backbone.string() + "\ntasks:\n";
    for (int task = 0; task < 3; ++task) {
      text += "  - name: task" + std::to_string(task) + "\n    dataset: data" + std::to_string(task) +
              ".jsonl\n    max_length: " + std::to_string(16 + 16 * task) +
              "\n    adapter: {type: lora, r: " + std::to_string(2 + 2 * task) + (task == 1 ? ", dropout: 0.1" : "") +
              "}\n    global_batch_size: " + std::to_string(8 - 2 * task) + "\n    steps: " + std::to_string(4 + task) +
              "\n    optimizer: {type: adamw, lr: 1e-2" + (task == 2 ? ", max_grad_norm: 0.5" : "") +
              "}\n    seed: " + std::to_string(task) + "\n";
    }
    return text;
  }

  std::string path(const std::string& name) const { return (folder / name).string(); }
  std::string planning() const {
    return "--workload " + path("workload.yaml") + " --profile " + path("profile.json") + " --foreign-profile";
  }

  /// Of every rank that the profile speaks of.
  void set_memory(Bytes bytes) const {
    std::string text = read_text(folder / "profile.json");
    const std::size_t start = text.find("\"memory_bytes\": ") + 16;
    text.replace(start, text.find(",", start) - start, std::to_string(bytes));
    write_text(folder / "profile.json", text);
  }

  /// Expects a one-line error that holds `words`, status 2, and no file at `absent`.
  void expect_bad_input(const std::string& command, const std::string& words, const std::string& absent = "out") {
    const Outcome outcome = run_braid(command);
    EXPECT_EQ(outcome.status, 2) << outcome.text;
    EXPECT_NE(outcome.text.find(words), std::string::npos) << outcome.text;
    EXPECT_EQ(outcome.text.rfind("error: ", 0), 0U) << outcome.text;
    EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
    EXPECT_FALSE(std::filesystem::exists(folder / absent)) << absent;
  }

  std::filesystem::path folder;
};

}  // namespace braid::cli::testing
