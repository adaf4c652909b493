#include "cli/workspace.h"

namespace braid::cli {
namespace {

using testing::Outcome;
using testing::read_text;
using testing::run_braid;
using testing::write_text;

class ReproducibleRun : public testing::Workspace {
 protected:
  /// Of the three tasks and more that are like them, those of these numbers.
  void write_tasks(const std::vector<int>& numbers) const {
    std::string text = "reproducible: true\nbackbone: " BRAID_SOURCE_DIR "/tests/golden/llama\ntasks:\n";
    for (const int task : numbers) {
      const int kind = task % 3;
      text += "  - {name: t" + std::to_string(task) + ", dataset: data" + std::to_string(kind) +
              ".jsonl, max_length: " + std::to_string(16 + 16 * kind) +
              ", adapter: {r: " + std::to_string(2 + 2 * kind) + (kind == 1 ? ", dropout: 0.1" : "") +
              "}, global_batch_size: " + std::to_string(8 - 2 * kind) + ", steps: 3, optimizer: {lr: 1e-2" +
              (kind == 2 ? ", max_grad_norm: 0.5" : "") + "}, seed: " + std::to_string(task) + "}\n";
    }
    write_text(folder / "workload.yaml", text);
  }
  /// The adapter of task 4, byte by byte.
  std::string adapter_by(const std::string& words) const {
    std::filesystem::remove_all(folder / "out");
    const Outcome outcome = run_braid("train --quiet " + planning() + " --out " + path("out") + " " + words);
    EXPECT_EQ(outcome.status, 0) << words << "\n" << outcome.text;
    return read_text(folder / "out" / "adapters" / "t4" / "adapter_model.safetensors");
  }
};

/// Alone, and with seven others, under any policy, on one rank, two stages and two replicas.
TEST_F(ReproducibleRun, AnAdapterIsTheSameToTheByteWhateverRunsBesideIt) {
  write_tasks({4});
  const std::string alone = adapter_by("--policy sl-peft --ranks 1");
  ASSERT_FALSE(alone.empty());
  write_tasks({0, 1, 2, 3, 4, 5, 6, 7});
  const std::vector<std::string> others = {"--policy sl-peft --ranks 2",
                                           "--policy mlora --ranks 2",
                                           "--policy muxtune --ranks 1",
                                           "--policy muxtune --ranks 2 --pp 2",
                                           "--policy muxtune:chunk=16 --ranks 2 --pp 2",
                                           "--policy lobra --ranks 2",
                                           "--policy braid --ranks 1",
                                           "--policy braid --ranks 2",
                                           "--policy hf-peft --ranks 2",
                                           "--policy lorafusion --ranks 2"};
  for (const std::string& words : others) EXPECT_TRUE(adapter_by(words) == alone) << words;
}

}  // namespace
}  // namespace braid::cli
