#include "exec/weight_names.h"

#include <algorithm>

#include "exec/devices.h"
#include "exec/layer_weights.h"
#include "support.h"

namespace braid::exec {
namespace {

/// The tensors of a golden backbone, to be stored again with something changed.
class Weights {
 public:
  explicit Weights(const char* name = "llama_5") : backbone_(costmodel::read_backbone(golden(name))) {
    const SafetensorsFolder stored = SafetensorsFolder::open(golden(name));
    for (const std::string& tensor : stored.names()) {
      const std::vector<std::int64_t>& shape = stored.find(tensor)->shape;
      tensors_.push_back({tensor, shape, stored.read_f32(tensor, shape)});
    }
  }

  costmodel::BackboneShape& backbone() { return backbone_; }
  void add(const std::string& name, std::vector<float> numbers) {
    tensors_.push_back({name, {static_cast<std::int64_t>(numbers.size())}, std::move(numbers)});
  }
  void remove(const std::string& name) {
    std::erase_if(tensors_, [&](const Stored& tensor) { return tensor.name == name; });
  }
  void copy(const std::string& from, const std::string& to) {
    Stored tensor =
        *std::find_if(tensors_.begin(), tensors_.end(), [&](const Stored& one) { return one.name == from; });
    remove(to);
    tensor.name = to;
    tensors_.push_back(std::move(tensor));
  }
  /// Puts `bad` in the place of its fourth number.
  void spoil(const std::string& name, float bad) {
    for (Stored& tensor : tensors_) {
      if (tensor.name == name) tensor.numbers[3] = bad;
    }
  }
  void drop_prefix(std::string_view prefix = "model.") {
    for (Stored& tensor : tensors_) {
      if (tensor.name.starts_with(prefix)) tensor.name.erase(0, prefix.size());
    }
  }

  StageWeights load(DataType type = DataType::f32) const {
    std::vector<NamedTensor> named;
    for (const Stored& tensor : tensors_) named.push_back({tensor.name, tensor.shape, tensor.numbers});
    write_safetensors(folder_ / "model.safetensors", named, type);
    return load_stage_weights(SafetensorsFolder::open(folder_.path()), Shard(backbone_),
                              planner::LayerRange{0, static_cast<std::int32_t>(backbone_.layers)},
                              reference_device().kernels());
  }
  /// What loading tells the user.
  std::string told() const {
    ::testing::internal::CaptureStderr();
    load();
    return ::testing::internal::GetCapturedStderr();
  }

 private:
  struct Stored {
    std::string name;
    std::vector<std::int64_t> shape;
    std::vector<float> numbers;
  };
  TestFolder folder_;
  costmodel::BackboneShape backbone_;
  std::vector<Stored> tensors_;
};

TEST(WeightNames, NamesMayStandWithoutTheirPrefix) {
  Weights weights;
  const std::vector<float> embedding = weights.load().embedding.on_host();
  weights.drop_prefix();
  EXPECT_EQ(weights.load().embedding.on_host(), embedding);
  EXPECT_EQ(weights.told(), "");
}

TEST(WeightNames, ATensorThatIsMissingIsNamed) {
  for (const char* name :
       {"model.norm.weight", "lm_head.weight", "model.layers.1.self_attn.k_proj.weight", "model.embed_tokens.weight"}) {
    Weights weights;
    weights.remove(name);
    expect_error([&] { weights.load(); }, fmt::format("tensor '{}' is missing", name));
  }
  Weights qwen3("qwen3");
  qwen3.remove("model.layers.0.self_attn.k_norm.weight");
  expect_error([&] { qwen3.load(); }, "tensor 'model.layers.0.self_attn.k_norm.weight' is missing");
}

TEST(WeightNames, ATensorWithANumberThatIsNotFiniteIsNamed) {
  for (const char* name : {"model.norm.weight", "lm_head.weight", "model.layers.1.self_attn.k_proj.weight",
                           "model.layers.0.input_layernorm.weight", "model.embed_tokens.weight"}) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      Weights weights;
      weights.spoil(name, bad);
      expect_error([&] { weights.load(); }, fmt::format("tensor '{}' holds {} at 3", name, bad));
    }
  }
}

TEST(WeightNames, ATensorOfTheBackboneThatNothingTakesUpIsRefused) {
  for (const char* name : {"model.layers.0.self_attn.q_proj.bias", "model.layers.1.self_attn.q_norm.weight",
                           "model.layers.0.mlp.down_proj.weight_scale", "model.extra.weight", "lm_head.bias"}) {
    Weights weights;
    weights.add(name, {1, 2});
    expect_error([&] { weights.load(); }, fmt::format("tensor \"{}\" is none that a backbone", name));
  }
  Weights deeper;
  deeper.copy("model.layers.1.input_layernorm.weight", "model.layers.2.input_layernorm.weight");
  expect_error([&] { deeper.load(); },
               "holds \"model.layers.2.input_layernorm.weight\", but config.json says 2 layers");
}

TEST(WeightNames, WhatStandsBesideTheBackboneIsIgnored) {
  Weights weights;
  weights.add("model.layers.0.self_attn.rotary_emb.inv_freq", {1, 2, 3, 4});
  EXPECT_EQ(weights.told(), "");
  weights.add("v_head.weight", {1, 2});
  const std::string told = weights.told();
  EXPECT_PRED2(contains, told, R"(ignored, as they stand beside the backbone: "v_head.weight")");
  EXPECT_FALSE(contains(told, "inv_freq")) << told;
}

/// As the hub has GPT-2: no "transformer." in front, and every layer's mask beside its weights.
TEST(WeightNames, GPT2IsReadWithoutItsPrefixAndOPTWithoutModel) {
  for (const auto& [name, prefix] : {std::pair<const char*, const char*>{"gpt2", "transformer."}, {"opt", "model."}}) {
    Weights weights(name);
    const StageWeights whole = weights.load();
    weights.drop_prefix(prefix);
    if (std::string_view(name) == "gpt2") weights.add("h.0.attn.bias", {1, 0, 1, 1});
    EXPECT_EQ(weights.told(), "");
    const StageWeights bare = weights.load();
    EXPECT_EQ(bare.embedding.on_host(), whole.embedding.on_host());
    EXPECT_EQ(bare.positions.on_host(), whole.positions.on_host());
    EXPECT_EQ(bare.final_norm.bias.on_host(), whole.final_norm.bias.on_host());
    EXPECT_EQ(whole.positions.size(), 64 * 36);
  }
}

TEST(WeightNames, ATiedHeadIsTheEmbeddingUnlessTheFileHasAnother) {
  Weights weights;
  weights.backbone().tied_head = true;
  EXPECT_PRED2(contains, weights.told(), "config.json ties the head to the embedding, but lm_head.weight is there");
  weights.copy("model.embed_tokens.weight", "lm_head.weight");
  EXPECT_EQ(weights.told(), "");
  weights.remove("lm_head.weight");
  EXPECT_EQ(weights.told(), "");
  const std::vector<float> embedding = weights.load().embedding.on_host();
  weights.copy("model.embed_tokens.weight", "lm_head.weight");
  weights.remove("model.embed_tokens.weight");
  EXPECT_EQ(weights.told(), "");
  EXPECT_EQ(weights.load().embedding.on_host(), embedding);
}

}  // namespace
}  // namespace braid::exec
