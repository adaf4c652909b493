#include "exec/example/example.h"

#include <array>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "exec/example/example_text.h"
#include "exec/example/random_backbone.h"
#include "workload/text/tokenizer.h"

namespace braid::exec {
namespace {

/// What follows the line that names the backbone.
constexpr std::string_view kTasks =
    R"(tasks:
  # Short sequences: one sentence in, one word out. Only the completion is learned.
  - name: reviews
    dataset: data/reviews.jsonl
    max_length: 64
    adapter: {type: lora, r: 8, alpha: 16, target_modules: [q_proj, k_proj, v_proj, o_proj]}
    global_batch_size: 16
    steps: 24
    optimizer: {type: adamw, lr: 1e-2, warmup_steps: 2, schedule: cosine}
    seed: 1

  # Multiple choice; a small adapter with dropout.
  - name: quiz
    dataset: data/quiz.jsonl
    max_length: 128
    adapter: {type: lora, r: 4, alpha: 8, dropout: 0.05, target_modules: [q_proj, v_proj, o_proj]}
    global_batch_size: 16
    steps: 24
    optimizer: {type: adamw, lr: 1e-2, schedule: linear}
    seed: 2

  # Conversations; a larger adapter on every linear layer, its gradient clipped.
  - name: entailment
    dataset: data/entailment.jsonl
    max_length: 256
    on_too_long: truncate  # or error, or drop
    adapter: {type: lora, r: 16, alpha: 32, target_modules: [q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj]}
    global_batch_size: 8
    steps: 16
    optimizer: {type: adamw, lr: 2e-3, warmup_steps: 4, schedule: cosine, max_grad_norm: 1.0}
    seed: 3

  # Long plain text, all of it learned.
  - name: reports
    dataset: data/reports.jsonl
    max_length: 512
    adapter: {type: lora, r: 12, alpha: 24, target_modules: [q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj]}
    global_batch_size: 8
    steps: 12
    optimizer: {type: adamw, lr: 5e-3, weight_decay: 0.01, schedule: constant}
    seed: 4
)";

void check_empty(const std::filesystem::path& folder, bool overwrite) {
  std::error_code ignored;
  const auto status = std::filesystem::status(folder, ignored);
  if (!std::filesystem::exists(status)) return;
  if (!std::filesystem::is_directory(status)) throw error("{}: is not a folder; give a new one", folder.string());
  if (!overwrite && !std::filesystem::is_empty(folder, ignored)) {
    throw error("{}: is not empty; give a new folder, or --overwrite to replace the files of an example in it",
                folder.string());
  }
}

}  // namespace

costmodel::BackboneShape example_backbone(ExampleSize size) {
  costmodel::BackboneShape shape;
  if (size == ExampleSize::small) {
    shape.layers = 4;
    shape.hidden = 1024;
    shape.intermediate = 2816;
    shape.heads = 16;
    shape.kv_heads = 4;
    shape.head_dim = 64;
    shape.vocabulary = 4096;
    shape.max_position = 1024;
    return shape;
  }
  shape.layers = 4;
  shape.hidden = 256;
  shape.intermediate = 704;
  shape.heads = 8;
  shape.kv_heads = 2;
  shape.head_dim = 32;
  shape.vocabulary = 320;
  shape.max_position = 1024;
  return shape;
}

void write_example(const std::filesystem::path& folder, std::uint64_t seed, bool overwrite, ExampleSize size) {
  check_empty(folder, overwrite);
  const std::string name = size == ExampleSize::small ? "small" : "tiny";
  const std::filesystem::path model = folder / "models" / name;
  const costmodel::BackboneShape shape = example_backbone(size);
  write_random_backbone(model, shape, mix_key(std::array<std::uint64_t, 2>{seed, 0}));
  write_file(model / "braid_tokenizer.json", workload::byte_tokenizer_json());

  struct File {
    std::string_view name;
    std::string (*lines)(int, RandomStream&);
    int samples;
  };
  constexpr std::array<File, 4> kFiles = {{{"reviews.jsonl", review_lines, 400},
                                           {"quiz.jsonl", quiz_lines, 320},
                                           {"entailment.jsonl", entailment_lines, 240},
                                           {"reports.jsonl", report_lines, 120}}};
  for (std::size_t i = 0; i < kFiles.size(); ++i) {
    RandomStream random(mix_key(std::array<std::uint64_t, 2>{seed, i + 1}));
    write_file(folder / "data" / kFiles[i].name, kFiles[i].lines(kFiles[i].samples, random));
  }
  write_file(
      folder / "workload.yaml",
      fmt::format(
          "# Four tasks that share one frozen backbone. Paths count from this file's folder.\nbackbone: models/{}\n{}",
          name, kTasks));
}

}  // namespace braid::exec
