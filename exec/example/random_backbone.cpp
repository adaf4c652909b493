#include "exec/example/random_backbone.h"

#include <array>
#include <cmath>
#include <deque>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/random.h"
#include "costmodel/shapes/family.h"
#include "exec/files/safetensors.h"

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
    for (const costmodel::ModuleGroup group : costmodel::kModuleGroups) {
      for (const costmodel::Module module : costmodel::modules_of(shape, group)) {
        const auto [in, out] = costmodel::module_shape(shape, module);
        const std::string_view name = costmodel::family_names(shape.architecture).name(module);
        weights.add_normal(fmt::format("{}{}.weight", prefix, name), out, in, 1.0 / std::sqrt(static_cast<double>(in)));
      }
    }
  }
  weights.add_ones("model.norm.weight", shape.hidden);
  weights.add_normal("lm_head.weight", shape.vocabulary, shape.hidden, head_deviation);
  return weights;
}

}  // namespace

void write_random_backbone(const std::filesystem::path& folder, const costmodel::BackboneShape& shape,
                           std::uint64_t seed) {
  write_safetensors(folder / "model.safetensors", random_backbone(shape, seed).tensors());
  write_file(folder / "config.json", config_json(shape));
}

}  // namespace braid::exec
