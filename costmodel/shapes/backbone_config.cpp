#include <algorithm>

#include "base/file.h"
#include "base/node.h"
#include "base/notice.h"
#include "costmodel/shapes/backbone.h"
#include "costmodel/shapes/config_keys.h"

namespace braid::costmodel {
namespace {

constexpr std::int64_t kLargestNumber = std::int64_t{1} << 31;

struct ArchitectureWord {
  std::string_view model_type;
  Architecture architecture;
};
constexpr ArchitectureWord kModelTypes[] = {{"llama", Architecture::llama}, {"mistral", Architecture::mistral},
                                            {"qwen2", Architecture::qwen2}, {"qwen3", Architecture::qwen3},
                                            {"gpt2", Architecture::gpt2},   {"opt", Architecture::opt}};

/// A word of the file in quotes for messages, control characters escaped.
std::string on_one_line(std::string_view word) {
  std::string text = fmt::format("{:?}", word);
  text.front() = text.back() = '\'';
  return text;
}

Architecture read_architecture(const Node& config) {
  const std::string type = config.string_or("model_type", "");
  std::string known;
  for (const ArchitectureWord& word : kModelTypes) {
    if (word.model_type == type) return word.architecture;
    known += (known.empty() ? "" : ", ") + std::string(word.model_type);
  }
  const Node* node = config.find("model_type");
  throw(node ? *node : config)
      .error(fmt::format("model_type {} is not supported", on_one_line(type)), fmt::format("supported: {}", known));
}

void check_activation(const Node& config) {
  const std::string activation = config.string_or("hidden_act", "silu");
  // Two names of x · sigmoid(x).
  if (activation == "silu" || activation == "swish") return;
  throw config.at("hidden_act")
      .error(fmt::format("hidden_act {} is not supported", on_one_line(activation)), "supported: silu");
}

/// Qwen2 has biases on q, k and v whatever this says.
void check_attention_bias(const Node& config, Architecture architecture) {
  if (architecture == Architecture::qwen2 || !config.bool_or("attention_bias", false)) return;
  throw config.at("attention_bias")
      .error("'attention_bias' is not supported",
             "use a backbone without biases, or Qwen2.5, which has them on q, k, v");
}

/// Whether `layer_types` is there and names a layer that slides.
bool any_sliding_layer(const Node* types) {
  bool slides = false;
  if (!types) return slides;
  for (const Node& type : types->sequence("layer_types")) {
    const std::string name = type.as_string("layer_types");
    if (name != "full_attention" && name != "sliding_attention")
      throw type.error(fmt::format("layer type {} is not supported", on_one_line(name)),
                       "use a backbone whose layers are full_attention or sliding_attention");
    slides = slides || name == "sliding_attention";
  }
  return slides;
}

/// The window of the layers that have one, 0 where none has. Mistral's layers all have it, Qwen's where it is used
/// those that `layer_types` names, or that come after `max_window_layers`; Llama's have none.
std::int64_t read_sliding_window(const Node& config, const BackboneShape& shape) {
  constexpr std::int64_t kDefault = 4096, kQwensFirstLayer = 28;
  const auto given = [&](const char* key) {
    const Node* node = config.find(key);
    return node && !node->is_null() ? node : nullptr;
  };
  const Node* types = given("layer_types");
  const Node* window = given("sliding_window");
  const bool slides = any_sliding_layer(types);
  // Of a backbone that was another family's before, a window may be left that is said not to be used.
  const bool used = config.bool_or("use_sliding_window", shape.architecture == Architecture::llama && window);
  if (shape.architecture == Architecture::llama) {
    if (const Node* fault = slides ? types : used ? (window ? window : given("use_sliding_window")) : nullptr)
      throw fault->error("a Llama backbone with a sliding window is not supported",
                         "use a backbone without it, or Mistral");
    return 0;
  }
  const bool is_null = config.find("sliding_window") && !window;
  if (is_null) return 0;
  const std::int64_t size = config.integer_or("sliding_window", kDefault, 1, kLargestNumber);
  if (shape.architecture == Architecture::mistral) return size;
  const bool late = config.integer_or("max_window_layers", kQwensFirstLayer, 0, kLargestNumber) < shape.layers;
  return used && (types ? slides : late) ? size : 0;
}

std::int64_t default_kv_heads(const BackboneShape& shape, const Node& config) {
  // A key that is there and null means as many as heads; of one that is not there each family has a default of its own.
  constexpr std::int64_t kMistrals = 8, kQwens = 32;
  if (config.find("num_key_value_heads") || shape.architecture == Architecture::llama) return shape.heads;
  return shape.architecture == Architecture::mistral ? kMistrals : kQwens;
}

void read_heads(const Node& config, BackboneShape& shape) {
  shape.heads = config.integer_at("num_attention_heads", 1, kLargestNumber);
  shape.kv_heads = config.integer_or("num_key_value_heads", default_kv_heads(shape, config), 1, shape.heads);
  if (shape.kv_heads > shape.heads || shape.heads % shape.kv_heads != 0) {
    const Node* node = config.find("num_key_value_heads");
    throw(node ? *node : config)
        .error(fmt::format("{} key/value heads do not divide {} query heads", shape.kv_heads, shape.heads),
               node ? "mend config.json" : "add num_key_value_heads");
  }
  const Node* size = config.find("head_dim");
  if (size && !size->is_null()) {
    shape.head_dim = size->as_integer("head_dim", 1, kLargestNumber);
  } else if (shape.architecture == Architecture::qwen3) {
    constexpr std::int64_t kQwen3s = 128;
    shape.head_dim = kQwen3s;
  } else {
    if (shape.hidden % shape.heads != 0)
      throw config.at("num_attention_heads").error("the heads do not divide hidden_size", "mend config.json");
    shape.head_dim = shape.hidden / shape.heads;
  }
  if (shape.head_dim % 2 != 0)
    throw config.error(fmt::format("head size {} is odd", shape.head_dim), "rotary embedding needs an even one");
}

/// Llama, Mistral, Qwen2 and Qwen3. Of keys that are left out transformers' own defaults are taken.
BackboneShape read_gated(const Node& config, BackboneShape shape) {
  constexpr std::int64_t kMistralsPositions = 131072, kQwensPositions = 32768, kLlamasPositions = 2048;
  check_config_keys(config, {});
  check_activation(config);
  check_attention_bias(config, shape.architecture);
  shape.layers = config.integer_at("num_hidden_layers", 1, 100000);
  shape.hidden = config.integer_at("hidden_size", 1, kLargestNumber);
  shape.intermediate = config.integer_at("intermediate_size", 1, kLargestNumber);
  read_heads(config, shape);
  shape.vocabulary = config.integer_at("vocab_size", 1, kLargestNumber);
  const std::int64_t positions = shape.architecture == Architecture::llama     ? kLlamasPositions
                                 : shape.architecture == Architecture::mistral ? kMistralsPositions
                                                                               : kQwensPositions;
  shape.max_position = config.integer_or("max_position_embeddings", positions, 1, kLargestNumber);
  shape.tied_head = config.bool_or("tie_word_embeddings", false);
  shape.qkv_bias = shape.architecture == Architecture::qwen2;
  shape.qk_norm = shape.architecture == Architecture::qwen3;
  shape.norm_epsilon = config.number_or("rms_norm_eps", 1e-6, 0.0);
  const Rope rope = read_rope(config, shape.max_position);
  shape.rope_theta = rope.theta;
  shape.rope_scaling = rope.scaling;
  shape.sliding_window = read_sliding_window(config, shape);
  return shape;
}

void refuse_unless(const Node& config, const char* key, bool as_meant, const char* remedy) {
  if (!as_meant) throw config.at(key).error(fmt::format("'{}' is not supported here", key), remedy);
}

/// Of GPT-2 and OPT; GPT-2's own gelu_new is the approximation by tanh.
Nonlinearity read_activation_function(const Node& config, Architecture architecture) {
  const bool gpt2 = architecture == Architecture::gpt2;
  const std::string activation = config.string_or("activation_function", gpt2 ? "gelu_new" : "relu");
  if (activation == "gelu_new" || activation == "gelu_pytorch_tanh") return Nonlinearity::gelu_tanh;
  if (activation == "relu") return Nonlinearity::relu;
  throw config.at("activation_function")
      .error(fmt::format("activation_function {} is not supported", on_one_line(activation)),
             "supported: gelu_new, gelu_pytorch_tanh, relu");
}

/// A frozen backbone's own dropout, with which it was trained, is not applied beside adapters.
void tell_of_dropout(const Node& config, std::initializer_list<const char*> keys) {
  std::vector<std::string> given;
  for (const char* key : keys) {
    if (config.number_or(key, 0.0, 0.0) > 0) given.push_back(key);
  }
  if (!given.empty())
    notice(fmt::format("{}: the backbone's own dropout ({}) is left out, as if it were evaluated", *config.file,
                       fmt::join(given, ", ")));
}

void check_gpt2(const Node& config) {
  check_config_keys(
      config, {"activation_function", "n_layer", "n_embd", "n_head", "n_inner", "n_positions", "layer_norm_epsilon",
               "embd_pdrop", "attn_pdrop", "resid_pdrop", "scale_attn_weights", "scale_attn_by_inverse_layer_idx",
               "reorder_and_upcast_attn", "n_ctx", "summary_activation", "summary_first_dropout",
               "summary_proj_to_labels", "summary_type", "summary_use_proj"});
  refuse_unless(config, "scale_attn_weights", config.bool_or("scale_attn_weights", true),
                "use a backbone whose scores are divided by the root of the head's size");
  refuse_unless(config, "scale_attn_by_inverse_layer_idx", !config.bool_or("scale_attn_by_inverse_layer_idx", false),
                "use a backbone whose scores do not depend on the layer's number");
  tell_of_dropout(config, {"embd_pdrop", "attn_pdrop", "resid_pdrop"});
}

void check_opt(const Node& config, std::int64_t hidden) {
  check_config_keys(config,
                    {"activation_function", "ffn_dim", "word_embed_proj_dim", "do_layer_norm_before", "enable_bias",
                     "layer_norm_elementwise_affine", "dropout", "attention_dropout", "layerdrop", "init_std"});
  refuse_unless(config, "word_embed_proj_dim", config.integer_or("word_embed_proj_dim", hidden) == hidden,
                "use a backbone whose embedding is as wide as its layers");
  refuse_unless(config, "do_layer_norm_before", config.bool_or("do_layer_norm_before", true),
                "use a backbone that normalizes before its layers");
  refuse_unless(config, "enable_bias", config.bool_or("enable_bias", true), "use a backbone with biases");
  refuse_unless(config, "layer_norm_elementwise_affine", config.bool_or("layer_norm_elementwise_affine", true),
                "use a backbone whose norms have weights");
  refuse_unless(config, "_remove_final_layer_norm", !config.bool_or("_remove_final_layer_norm", false),
                "use a backbone with a norm before its head");
  tell_of_dropout(config, {"dropout", "attention_dropout", "layerdrop"});
}

/// GPT-2 and OPT, with transformers' names and defaults of either.
BackboneShape read_plain(const Node& config, BackboneShape shape) {
  const bool gpt2 = shape.architecture == Architecture::gpt2;
  if (gpt2) check_gpt2(config);
  shape.layers = config.integer_at(gpt2 ? "n_layer" : "num_hidden_layers", 1, 100000);
  shape.hidden = config.integer_at(gpt2 ? "n_embd" : "hidden_size", 1, kLargestNumber);
  shape.heads = config.integer_at(gpt2 ? "n_head" : "num_attention_heads", 1, kLargestNumber);
  shape.kv_heads = shape.heads;
  if (shape.hidden % shape.heads != 0)
    throw config.at(gpt2 ? "n_head" : "num_attention_heads")
        .error("the heads do not divide the hidden size", "mend config.json");
  shape.head_dim = shape.hidden / shape.heads;
  if (!gpt2) check_opt(config, shape.hidden);
  shape.intermediate = 4 * shape.hidden;
  const char* width = gpt2 ? "n_inner" : "ffn_dim";
  if (const Node* node = config.find(width); node && !node->is_null())
    shape.intermediate = node->as_integer(width, 1, kLargestNumber);
  shape.vocabulary = config.integer_at("vocab_size", 1, kLargestNumber);
  shape.max_position =
      config.integer_or(gpt2 ? "n_positions" : "max_position_embeddings", gpt2 ? 1024 : 2048, 1, kLargestNumber);
  shape.tied_head = config.bool_or("tie_word_embeddings", true);
  shape.qkv_bias = true;
  shape.nonlinearity = read_activation_function(config, shape.architecture);
  // OPT's is PyTorch's.
  shape.norm_epsilon = gpt2 ? config.number_or("layer_norm_epsilon", 1e-5, 0.0) : 1e-5;
  return shape;
}

constexpr std::string_view kCached = "models--";

std::string last_name(const std::filesystem::path& folder) {
  return folder.filename().empty() ? folder.parent_path().filename().string() : folder.filename().string();
}

/// The folder's name; of a snapshot in the hub's cache the model's.
std::string backbone_name(const std::filesystem::path& folder) {
  const std::filesystem::path whole = folder.filename().empty() ? folder.parent_path() : folder;
  const std::filesystem::path snapshots = whole.parent_path();
  const std::string model = snapshots.parent_path().filename().string();
  if (snapshots.filename() != "snapshots" || !model.starts_with(kCached)) return last_name(folder);
  return model.substr(model.rfind("--") + 2);
}

std::string trimmed(std::string text) {
  constexpr std::string_view kSpace = " \t\r\n";
  text.erase(text.find_last_not_of(kSpace) + 1);
  text.erase(0, text.find_first_not_of(kSpace));
  return text;
}

}  // namespace

std::filesystem::path backbone_folder(const std::filesystem::path& folder) {
  std::error_code ignored;
  const std::filesystem::path snapshots = folder / "snapshots";
  if (std::filesystem::exists(folder / "config.json", ignored) || !std::filesystem::is_directory(snapshots, ignored))
    return folder;
  const std::filesystem::path reference = folder / "refs" / "main";
  if (!std::filesystem::is_regular_file(reference, ignored))
    throw error("{}: a model of the hub's cache without refs/main; give one of the folders in {}", folder.string(),
                snapshots.string());
  const std::filesystem::path hash = trimmed(read_file(reference));
  if (hash.empty() || hash != hash.filename() || hash == ".." || hash == "." ||
      !std::filesystem::is_directory(snapshots / hash, ignored))
    throw error("{}: names no folder of {}; give one of those folders, or fetch the model again", reference.string(),
                snapshots.string());
  return snapshots / hash;
}

BackboneShape read_backbone(const std::filesystem::path& given) {
  if (!std::filesystem::is_directory(given)) {
    throw error("{}: no such backbone; give a Hugging Face folder or one of: {}", given.string(),
                fmt::join(builtin_backbone_names(), ", "));
  }
  const std::filesystem::path folder = backbone_folder(given);
  const Node config = read_json(folder / "config.json", RepeatedKeys::last_wins);
  BackboneShape shape;
  shape.name = backbone_name(folder);
  shape.architecture = read_architecture(config);
  return shape.gated() ? read_gated(config, std::move(shape)) : read_plain(config, std::move(shape));
}

}  // namespace braid::costmodel
