#include "costmodel/shapes/config_keys.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "base/notice.h"

namespace braid::costmodel {
namespace {

/// Read elsewhere, where they are honoured or refused.
constexpr auto kRead = std::to_array<std::string_view>({"model_type",          "hidden_act",
                                                        "num_hidden_layers",   "hidden_size",
                                                        "intermediate_size",   "num_attention_heads",
                                                        "num_key_value_heads", "head_dim",
                                                        "vocab_size",          "max_position_embeddings",
                                                        "tie_word_embeddings", "rms_norm_eps",
                                                        "rope_theta",          "rope_scaling",
                                                        "rope_parameters",     "original_max_position_embeddings",
                                                        "attention_bias",      "sliding_window",
                                                        "use_sliding_window",  "max_window_layers",
                                                        "layer_types"});

/// Of training from scratch, of generation, of classification, of files and of versions.
constexpr auto kHarmless = std::to_array<std::string_view>({
    "architectures",
    "attn_implementation",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "chunk_size_feed_forward",
    "cross_attention_hidden_size",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "id2label",
    "initializer_range",
    "is_decoder",
    "is_llama_config",
    "keys_to_ignore_at_inference",
    "label2id",
    "length_penalty",
    "max_length",
    "max_sequence_length",
    "min_length",
    "model_max_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "pad_token_id",
    "prefix",
    "problem_type",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "typical_p",
    "unk_token_id",
    "use_bfloat16",
    "use_cache",
});

/// Keys of transformers' related families that change what is computed. Null, false and empty lists or maps say that
/// they do not, and so does `neutral` where there is such a number.
struct Arithmetic {
  std::string_view key;
  std::optional<double> neutral;
};

constexpr auto kArithmetic = std::to_array<Arithmetic>({
    // Weights that are not what they seem.
    {"compression_config", {}},
    {"quantization_config", {}},
    {"pruned_heads", {}},
    // Biases.
    {"add_bias_linear", {}},
    {"add_qkv_bias", {}},
    {"attention_out_bias", {}},
    {"bias", {}},
    {"enable_bias", {}},
    {"lm_head_bias", {}},
    {"mlp_bias", {}},
    {"norm_bias", {}},
    {"o_bias", {}},
    {"output_bias", {}},
    {"qkv_bias", {}},
    {"use_attention_bias", {}},
    {"use_bias", {}},
    {"use_qkv_bias", {}},
    // Positions.
    {"alibi", {}},
    {"global_rope_theta", {}},
    {"local_rope_theta", {}},
    {"mrope_section", {}},
    {"no_rope_layer_interval", 0},
    {"no_rope_layers", {}},
    {"partial_rotary_factor", 1},
    {"rope_interleaved", {}},
    {"rope_local_base_freq", {}},
    {"rope_percent", 1},
    {"rope_ratio", 1},
    {"rotary_dim", {}},
    {"rotary_pct", 1},
    {"use_alibi", {}},
    {"use_dynamic_ntk", {}},
    {"use_logn_attn", {}},
    {"use_mrope", {}},
    // Who attends to whom, and how much.
    {"attention_chunk_size", {}},
    {"attention_multiplier", {}},
    {"attention_scale", {}},
    {"attention_sinks", {}},
    {"attention_types", {}},
    {"attention_value_scale", 1},
    {"attention_window", {}},
    {"attn_output_gate", {}},
    {"attn_scale", {}},
    {"attn_temperature_tuning", {}},
    {"clip_qkv", {}},
    {"global_attn_every_n_layers", {}},
    {"local_attention", {}},
    {"qk_scale_factor", 1},
    {"query_pre_attn_scalar", {}},
    {"sliding_window_pattern", {}},
    {"softmax_scale", {}},
    {"use_attention_sinks", {}},
    {"use_bidirectional_attention", {}},
    {"use_gated_attention", {}},
    // Scales and caps.
    {"attention_in_multiplier", 1},
    {"attention_out_multiplier", 1},
    {"attn_logit_softcapping", {}},
    {"dim_model_base", {}},
    {"embed_scale", 1},
    {"embedding_multiplier", 1},
    {"embedding_scale", 1},
    {"final_logit_softcapping", {}},
    {"key_multiplier", 1},
    {"lm_head_multiplier", 1},
    {"logit_scale", 1},
    {"logit_softcapping", {}},
    {"logits_mup_width_multiplier", 1},
    {"logits_scaling", 1},
    {"mlp_multipliers", {}},
    {"mup_width_multiplier", 1},
    {"output_multiplier", 1},
    {"residual_multiplier", 1},
    {"residual_scale", 1},
    {"scale_depth", {}},
    {"scale_emb", 1},
    {"scale_embedding", {}},
    {"use_layer_scale", {}},
    {"width_multiplier", 1},
    // Norms and the order of a layer.
    {"apply_layernorm_1p", {}},
    {"normalize_embedding", {}},
    {"parallel_attn", {}},
    {"qk_layernorm", {}},
    {"qk_norm", {}},
    {"rms_norm_add_unit_offset", {}},
    {"sandwich_norm", {}},
    {"swin_norm", {}},
    {"use_parallel_residual", {}},
    {"use_post_norm", {}},
    {"use_qk_layernorm", {}},
    {"use_qk_norm", {}},
    {"use_sandwich_norm", {}},
    // What is left out while training. Adapters' own dropout is the task's.
    {"attention_dropout", 0},
    {"embd_pdrop", 0},
    {"hidden_dropout", 0},
    {"layerdrop", 0},
    {"resid_pdrop", 0},
    // Activations under other names.
    {"activation_function", {}},
    {"hidden_activation", {}},
    {"mlp_activation", {}},
    // Experts.
    {"first_k_dense_replace", {}},
    {"mlp_only_layers", {}},
    {"moe_intermediate_size", 0},
    {"moe_num_experts", 0},
    {"n_routed_experts", 0},
    {"n_shared_experts", 0},
    {"num_experts", 0},
    {"num_experts_per_tok", 0},
    {"num_local_experts", 0},
    {"routed_scaling_factor", 1},
    {"shared_expert_intermediate_size", 0},
    // Layers of other kinds.
    {"add_cross_attention", {}},
    {"attn_layer_indices", {}},
    {"block_configs", {}},
    {"cross_attention_layers", {}},
    {"full_attention_interval", {}},
    {"hybrid_override_pattern", {}},
    {"is_encoder_decoder", {}},
    {"kv_lora_rank", {}},
    {"mamba_d_state", {}},
    {"num_kv_shared_layers", 0},
    {"num_nextn_predict_layers", 0},
    {"per_layer_config", {}},
    {"q_lora_rank", {}},
    {"qk_nope_head_dim", {}},
    {"qk_rope_head_dim", {}},
    {"text_config", {}},
    {"v_head_dim", {}},
    {"vision_config", {}},
});

bool says_nothing(const Node& value) {
  switch (value.kind) {
    case Node::Kind::null:
      return true;
    case Node::Kind::sequence:
      return value.items.empty();
    case Node::Kind::map:
      return value.fields.empty();
    case Node::Kind::scalar:
      break;
  }
  return !value.quoted && value.text == "false";
}

bool is_number(const Node& value, double number) {
  if (!value.is_scalar() || value.quoted) return false;
  double read = 0;
  const char* last = value.text.data() + value.text.size();
  const auto [end, code] = std::from_chars(value.text.data(), last, read);
  return code == std::errc() && end == last && read == number;
}

template <std::size_t N>
bool among(std::string_view key, const std::array<std::string_view, N>& keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

void refuse_arithmetic(std::string_view key, const Node& value) {
  const auto* const found = std::find_if(kArithmetic.begin(), kArithmetic.end(),
                                         [&](const Arithmetic& arithmetic) { return arithmetic.key == key; });
  if (found == kArithmetic.end() || (found->neutral && is_number(value, *found->neutral))) return;
  const bool weights = key == "quantization_config" || key == "compression_config";
  throw value.error(fmt::format("'{}' is not supported: it changes what the layers compute", key),
                    weights ? "use the backbone's weights in f32, bf16 or f16" : "use a backbone without it");
}

bool known(std::string_view key, const Node& value) {
  // Names with an underscore in front are transformers' notes to itself.
  if (key.starts_with('_') || among(key, kRead) || among(key, kHarmless)) return true;
  // Slices of a product, added up: the same product.
  if (key == "pretraining_tp" && is_number(value, 1)) return true;
  return std::any_of(kArithmetic.begin(), kArithmetic.end(),
                     [&](const Arithmetic& arithmetic) { return arithmetic.key == key; });
}

}  // namespace

void check_config_keys(const Node& config, std::initializer_list<std::string_view> read) {
  std::vector<std::string> ignored;
  for (const auto& [key, value] : config.fields) {
    // The one key whose false says more than its absence.
    if (key == "is_causal" && value.is_scalar() && value.text == "false")
      throw value.error("'is_causal: false' is not supported: every token would see those after it",
                        "use a backbone that predicts the next token");
    if (key == "is_causal" || says_nothing(value)) continue;
    if (std::find(read.begin(), read.end(), key) != read.end()) continue;
    refuse_arithmetic(key, value);
    if (!known(key, value)) ignored.push_back(fmt::format("{:?}", key));
  }
  if (!ignored.empty())
    notice(fmt::format("{}: ignored, as no backbone of this kind computes with them: {}", *config.file,
                       fmt::join(ignored, ", ")));
}

}  // namespace braid::costmodel
