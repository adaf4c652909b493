#include "costmodel/backbone.h"

#include "base/node.h"

namespace braid::costmodel {
namespace {

RopeScaling read_rope_scaling(const Node& config) {
  RopeScaling scaling;
  const Node* node = config.find("rope_scaling");
  if (!node || node->is_null()) return scaling;
  const Node* type = node->find("rope_type") ? node->find("rope_type") : node->find("type");
  const std::string name = type ? type->as_string("rope_type") : "";
  if (name == "default") return scaling;
  if (name != "llama3")
    throw node->error(fmt::format("rope_scaling type '{}' is not supported", name),
                      "use a backbone with none, default or llama3");
  scaling.llama3 = true;
  scaling.factor = node->number_at("factor", 1.0);
  scaling.low_frequency_factor = node->number_at("low_freq_factor", 0.0);
  scaling.high_frequency_factor = node->number_at("high_freq_factor", 0.0);
  scaling.original_max_position = node->number_at("original_max_position_embeddings", 1.0);
  if (scaling.high_frequency_factor <= scaling.low_frequency_factor) {
    throw node->error("high_freq_factor is not above low_freq_factor", "mend config.json");
  }
  return scaling;
}

Architecture read_architecture(const Node& config) {
  const std::string type = config.string_or("model_type", "");
  if (type == "llama") return Architecture::llama;
  if (type == "qwen2") return Architecture::qwen2;
  if (type == "gpt2") return Architecture::gpt2;
  if (type == "opt") return Architecture::opt;
  const Node* node = config.find("model_type");
  throw(node ? *node : config)
      .error(fmt::format("model_type '{}' is not supported", type), "supported: llama, qwen2, gpt2, opt");
}

void refuse_what_changes_the_network(const Node& config) {
  if (const std::string activation = config.string_or("hidden_act", "silu"); activation != "silu") {
    throw config.at("hidden_act").error(fmt::format("hidden_act '{}' is not supported", activation), "supported: silu");
  }
  for (const char* key : {"mlp_bias", "use_sliding_window", "quantization_config", "rope_parameters"}) {
    const Node* node = config.find(key);
    if (node && !node->is_null() && !(node->is_scalar() && (node->text == "false"))) {
      throw node->error(fmt::format("'{}' is not supported", key), "use a backbone without it");
    }
  }
}

constexpr std::int64_t kLargestNumber = std::int64_t{1} << 31;

/// Llama and Qwen2.
BackboneShape read_gated(const Node& config, BackboneShape shape) {
  refuse_what_changes_the_network(config);
  shape.layers = config.integer_at("num_hidden_layers", 1, 100000);
  shape.hidden = config.integer_at("hidden_size", 1, kLargestNumber);
  shape.intermediate = config.integer_at("intermediate_size", 1, kLargestNumber);
  shape.heads = config.integer_at("num_attention_heads", 1, kLargestNumber);
  shape.kv_heads = config.integer_or("num_key_value_heads", shape.heads, 1, shape.heads);
  shape.head_dim = config.integer_or("head_dim", shape.hidden / shape.heads, 1, kLargestNumber);
  if (!config.find("head_dim") && shape.hidden % shape.heads != 0) {
    throw config.at("num_attention_heads").error("the heads do not divide hidden_size", "mend config.json");
  }
  shape.vocabulary = config.integer_at("vocab_size", 1, kLargestNumber);
  shape.max_position = config.integer_or("max_position_embeddings", 2048, 1, kLargestNumber);
  // transformers' own defaults, for a config.json that leaves them out.
  shape.tied_head = config.bool_or("tie_word_embeddings", false);
  shape.qkv_bias = shape.architecture == Architecture::qwen2;
  shape.norm_epsilon = config.number_or("rms_norm_eps", 1e-6, 0.0);
  shape.rope_theta = config.number_or("rope_theta", 10000.0, 1.0);
  shape.rope_scaling = read_rope_scaling(config);
  if (const Node* bias = config.find("attention_bias"); bias && bias->as_bool("attention_bias")) {
    throw bias->error("'attention_bias' is not supported", "use a Llama backbone without biases, or Qwen2.5");
  }
  if (shape.heads % shape.kv_heads != 0) {
    throw config.at("num_key_value_heads")
        .error("the key/value heads do not divide the query heads", "mend config.json");
  }
  if (shape.head_dim % 2 != 0)
    throw config.error(fmt::format("head size {} is odd", shape.head_dim), "rotary embedding needs an even one");
  return shape;
}

void refuse_unless(const Node& config, const char* key, bool as_meant, const char* remedy) {
  if (!as_meant) throw config.at(key).error(fmt::format("'{}' is not supported here", key), remedy);
}

/// GPT-2 and OPT, with transformers' names and defaults of either.
BackboneShape read_plain(const Node& config, BackboneShape shape) {
  const bool gpt2 = shape.architecture == Architecture::gpt2;
  shape.layers = config.integer_at(gpt2 ? "n_layer" : "num_hidden_layers", 1, 100000);
  shape.hidden = config.integer_at(gpt2 ? "n_embd" : "hidden_size", 1, kLargestNumber);
  shape.heads = config.integer_at(gpt2 ? "n_head" : "num_attention_heads", 1, kLargestNumber);
  shape.kv_heads = shape.heads;
  if (shape.hidden % shape.heads != 0)
    throw config.at(gpt2 ? "n_head" : "num_attention_heads")
        .error("the heads do not divide the hidden size", "mend config.json");
  shape.head_dim = shape.hidden / shape.heads;
  shape.intermediate = 4 * shape.hidden;
  const char* width = gpt2 ? "n_inner" : "ffn_dim";
  if (const Node* node = config.find(width); node && !node->is_null())
    shape.intermediate = node->as_integer(width, 1, kLargestNumber);
  shape.vocabulary = config.integer_at("vocab_size", 1, kLargestNumber);
  shape.max_position =
      config.integer_or(gpt2 ? "n_positions" : "max_position_embeddings", gpt2 ? 1024 : 2048, 1, kLargestNumber);
  shape.tied_head = config.bool_or("tie_word_embeddings", true);
  shape.qkv_bias = true;
  if (!gpt2) {
    refuse_unless(config, "word_embed_proj_dim", config.integer_or("word_embed_proj_dim", shape.hidden) == shape.hidden,
                  "use a backbone whose embedding is as wide as its layers");
    refuse_unless(config, "do_layer_norm_before", config.bool_or("do_layer_norm_before", true),
                  "use a backbone that normalizes before its layers");
  }
  return shape;
}

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
    shape->rope_scaling = {true, 8.0, 1.0, 4.0, 8192.0};
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

std::int64_t BackboneShape::linear_parameters() const {
  return hidden * qkv_width() + query_width() * hidden + hidden * up_width() + intermediate * hidden;
}

std::int64_t BackboneShape::vector_parameters() const {
  const std::int64_t biases = gated() ? (qkv_bias ? qkv_width() : 0) : qkv_width() + up_width() + 2 * hidden;
  return 2 * norm_parameters() + biases;
}

std::int64_t BackboneShape::parameters() const {
  return layers * layer_parameters() + embedding_parameters() + (tied_head ? 0 : vocabulary * hidden) +
         norm_parameters();
}

BackboneShape read_backbone(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) {
    throw error("{}: no such backbone; give a Hugging Face folder or one of: {}", folder.string(),
                fmt::join(builtin_backbone_names(), ", "));
  }
  const Node config = read_json(folder / "config.json");
  BackboneShape shape;
  shape.name = folder.filename().empty() ? folder.parent_path().filename().string() : folder.filename().string();
  shape.architecture = read_architecture(config);
  return shape.gated() ? read_gated(config, std::move(shape)) : read_plain(config, std::move(shape));
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
