#include "exec/example/example.h"

#include <array>
#include <cmath>
#include <deque>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "costmodel/shapes/adapter.h"
#include "exec/example/example_text.h"
#include "exec/files/safetensors.h"
#include "workload/text/tokenizer.h"

namespace braid::exec {
namespace {

std::string config_json(const costmodel::BackboneShape& shape) {
  const nlohmann::ordered_json config = {{"architectures", {"LlamaForCausalLM"}},
                                         {"model_type", "llama"},
                                         {"hidden_act", "silu"},
                                         {"hidden_size", shape.hidden},
                                         {"intermediate_size", shape.intermediate},
                                         {"num_hidden_layers", shape.layers},
                                         {"num_attention_heads", shape.heads},
                                         {"num_key_value_heads", shape.kv_heads},
                                         {"head_dim", shape.head_dim},
                                         {"vocab_size", shape.vocabulary},
                                         {"max_position_embeddings", shape.max_position},
                                         {"rms_norm_eps", shape.norm_epsilon},
                                         {"rope_theta", shape.rope_theta},
                                         {"rope_scaling", nullptr},
                                         {"tie_word_embeddings", shape.tied_head},
                                         {"attention_bias", false},
                                         {"mlp_bias", false},
                                         {"attention_dropout", 0.0},
                                         {"bos_token_id", 256},
                                         {"eos_token_id", 257},
                                         {"torch_dtype", "float32"},
                                         {"use_cache", true}};
  return config.dump(2) + "\n";
}

/// Draws a backbone's tensors one after the other, each under a key of its own.
class RandomWeights {
 public:
  explicit RandomWeights(std::uint64_t seed) : seed_(seed) {}

  void add_normal(std::string name, std::int64_t rows, std::int64_t columns, double deviation) {
    RandomStream random(mix_key(std::array<std::uint64_t, 2>{seed_, tensors_.size()}));
    std::vector<float> numbers(static_cast<std::size_t>(rows * columns));
    for (float& number : numbers) number = static_cast<float>(deviation * random.next_normal());
    add(std::move(name), {rows, columns}, std::move(numbers));
  }
  void add_ones(std::string name, std::int64_t count) {
    add(std::move(name), {count}, std::vector<float>(static_cast<std::size_t>(count), 1.0F));
  }
  std::span<const NamedTensor> tensors() const { return tensors_; }

 private:
  void add(std::string name, std::vector<std::int64_t> shape, std::vector<float> numbers) {
    const std::vector<float>& kept = data_.emplace_back(std::move(numbers));
    tensors_.push_back({std::move(name), std::move(shape), kept});
  }

  std::uint64_t seed_;
  std::deque<std::vector<float>> data_;
  std::vector<NamedTensor> tensors_;
};

/// Each linear layer keeps the size of what it reads, so that every layer has its say in the hidden state, and logits
/// vary by kLogitDeviation: enough for adapters below a random head to move them within a few steps.
RandomWeights random_backbone(const costmodel::BackboneShape& shape, std::uint64_t seed) {
  constexpr double kLogitDeviation = 1.0;
  const double head_deviation = kLogitDeviation / std::sqrt(static_cast<double>(shape.hidden));
  RandomWeights weights(seed);
  weights.add_normal("model.embed_tokens.weight", shape.vocabulary, shape.hidden, 1.0);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    weights.add_ones(prefix + "input_layernorm.weight", shape.hidden);
    weights.add_ones(prefix + "post_attention_layernorm.weight", shape.hidden);
    for (const costmodel::Module module : costmodel::kModules) {
      const auto [in, out] = costmodel::module_shape(shape, module);
      const bool attention = module <= costmodel::Module::o;
      weights.add_normal(fmt::format("{}{}.{}.weight", prefix, attention ? "self_attn" : "mlp", module_name(module)),
                         out, in, 1.0 / std::sqrt(static_cast<double>(in)));
    }
  }
  weights.add_ones("model.norm.weight", shape.hidden);
  weights.add_normal("lm_head.weight", shape.vocabulary, shape.hidden, head_deviation);
  return weights;
}

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
  write_safetensors(model / "model.safetensors",
                    random_backbone(shape, mix_key(std::array<std::uint64_t, 2>{seed, 0})).tensors());
  write_file(model / "config.json", config_json(shape));
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
