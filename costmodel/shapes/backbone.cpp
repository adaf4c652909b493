#include "costmodel/shapes/backbone.h"

#include "base/error.h"

namespace braid::costmodel {
namespace {

BackboneShape llama(std::string name, std::int64_t layers, std::int64_t hidden, std::int64_t intermediate,
                    std::int64_t heads, std::int64_t kv_heads, std::int64_t vocabulary, std::int64_t max_position) {
  BackboneShape shape;
  shape.name = std::move(name);
  shape.layers = layers;
  shape.hidden = hidden;
  shape.intermediate = intermediate;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.head_dim = hidden / heads;
  shape.vocabulary = vocabulary;
  shape.max_position = max_position;
  return shape;
}

/// The published figures of backbones.
std::vector<BackboneShape> builtins() {
  BackboneShape llama31_8b = llama("llama3.1-8b", 32, 4096, 14336, 32, 8, 128256, 131072);
  BackboneShape llama31_70b = llama("llama3.1-70b", 80, 8192, 28672, 64, 8, 128256, 131072);
  for (BackboneShape* shape : {&llama31_8b, &llama31_70b}) {
    shape->rope_theta = 500000.0;
    shape->rope_scaling = {RopeKind::llama3, 8.0, 1.0, 4.0, 8192.0};
  }
  BackboneShape qwen = llama("qwen2.5-32b", 64, 5120, 27648, 40, 8, 152064, 131072);
  qwen.architecture = Architecture::qwen2;
  qwen.qkv_bias = true;
  qwen.rope_theta = 1000000.0;
  qwen.norm_epsilon = 1e-6;
  const auto plain = [](std::string name, Architecture architecture, std::int64_t layers, std::int64_t hidden,
                        std::int64_t heads, std::int64_t vocabulary) {
    BackboneShape shape = llama(std::move(name), layers, hidden, 4 * hidden, heads, heads, vocabulary, 2048);
    shape.architecture = architecture;
    shape.nonlinearity = usual_nonlinearity(architecture);
    shape.tied_head = true;
    shape.qkv_bias = true;
    return shape;
  };
  return {llama("llama2-7b", 32, 4096, 11008, 32, 32, 32000, 4096),
          llama("llama2-13b", 40, 5120, 13824, 40, 40, 32000, 4096),
          llama("llama2-70b", 80, 8192, 28672, 64, 8, 32000, 4096), llama31_8b, llama31_70b, qwen,
          llama("tinyllama-1.1b", 22, 2048, 5632, 32, 4, 32000, 2048),
          // Brown et al. 2020, table 2.1, with GPT-2's vocabulary; Zhang et al. 2022, table 1.
          plain("gpt3-2.7b", Architecture::gpt2, 32, 2560, 32, 50257),
          plain("opt-30b", Architecture::opt, 48, 7168, 56, 50272)};
}

}  // namespace

Nonlinearity usual_nonlinearity(Architecture architecture) {
  if (architecture == Architecture::gpt2) return Nonlinearity::gelu_tanh;
  return architecture == Architecture::opt ? Nonlinearity::relu : Nonlinearity::silu;
}

std::int64_t BackboneShape::linear_parameters() const {
  return hidden * qkv_width() + query_width() * hidden + hidden * up_width() + intermediate * hidden;
}

std::int64_t BackboneShape::vector_parameters() const {
  const std::int64_t biases = biased() ? qkv_width() + up_width() + 2 * hidden : qkv_bias ? qkv_width() : 0;
  return 2 * norm_parameters() + biases + (qk_norm ? 2 * head_dim : 0);
}

std::int64_t BackboneShape::parameters() const {
  return layers * layer_parameters() + embedding_parameters() + (tied_head ? 0 : vocabulary * hidden) +
         norm_parameters();
}

BackboneShape builtin_backbone(const std::string& name) {
  for (const BackboneShape& shape : builtins()) {
    if (shape.name == name) return shape;
  }
  throw error("unknown backbone '{}'; known: {}", name, fmt::join(builtin_backbone_names(), ", "));
}

std::vector<std::string> builtin_backbone_names() {
  std::vector<std::string> names;
  for (const BackboneShape& shape : builtins()) names.push_back(shape.name);
  return names;
}

}  // namespace braid::costmodel
