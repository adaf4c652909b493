#include "workload/peft_config.h"

#include <set>

#include "costmodel/shapes/family.h"

namespace braid::workload {
namespace {

using costmodel::AdapterMethod;
using costmodel::AdapterShape;
using costmodel::kModules;
using costmodel::Module;
using costmodel::module_name;

bool is_left_out(const Node& node) {
  if (node.is_map()) return node.fields.empty();
  if (node.is_sequence()) return node.items.empty();
  return node.is_null() || (node.is_scalar() && (node.text.empty() || (!node.quoted && node.text == "false")));
}

/// Keys of a LoraConfig that say where the adapter is from, how it was begun or trained, or that matter only beside
/// others which are refused: they change nothing of what the adapter computes.
const std::set<std::string_view> kHarmlessPeftKeys = {"auto_mapping",      "base_model_name_or_path",
                                                      "revision",          "inference_mode",
                                                      "peft_version",      "task_type",
                                                      "lora_dropout",      "megatron_core",
                                                      "eva_config",        "corda_config",
                                                      "lora_ga_config",    "loftq_config",
                                                      "layers_pattern",    "qalora_group_size",
                                                      "runtime_config",    "ensure_weight_tying",
                                                      "lora_plus_lr_ratio"};

/// Keys that are held against the task, below.
const std::set<std::string_view> kHeldPeftKeys = {
    "peft_type",    "r",    "lora_alpha",        "use_rslora", "target_modules", "alpha_pattern",
    "rank_pattern", "bias", "init_lora_weights", "use_dora"};

/// Keys that change what is computed, and what to do about each.
const std::vector<std::pair<std::string_view, std::string_view>> kRefusedPeftKeys = {
    {"use_qalora", "QA-LoRA pools its inputs, which is not supported; give a plain LoRA adapter"},
    {"lora_bias", "biases beside B are not supported; train one with lora_bias: false"},
    {"fan_in_fan_out", "weights stored transposed are not supported; the backbones here store them [out, in]"},
    {"modules_to_save", "it was trained with whole modules of its own, which is not supported; train without them"},
    {"trainable_token_indices",
     "it was trained with embeddings of its own, which is not supported; train without them"},
    {"layer_replication", "it is of a backbone with layers repeated; save that backbone as a model of its own"},
    {"exclude_modules", "name the modules that it has in target_modules and leave exclude_modules out"},
    {"layers_to_transform", "adapters of some layers alone are not supported; train one of all layers"},
    {"target_parameters", "adapters of bare parameters are not supported; name linear layers in target_modules"},
    {"alora_invocation_tokens", "activated LoRA is not supported; give a plain LoRA adapter"},
    {"megatron_config", "Megatron's sharded adapters are not supported; save it as a plain LoRA adapter"}};

[[noreturn]] void refuse(const Node& node, std::string_view key, std::string_view remedy) {
  throw node.error(fmt::format("{} changes what the adapter computes", key), std::string(remedy));
}

/// Whether the base's own weights were changed when the adapter was begun, so that it fits no other.
bool changes_base(std::string_view init) {
  for (const std::string_view start : {"pissa", "olora", "loftq", "corda", "lora_ga"}) {
    if (init.starts_with(start)) return true;
  }
  return false;
}

template <typename Value>
void check_same(const Node& config, std::string_view key, const Value& theirs, std::string_view name,
                const Value& ours) {
  if (theirs == ours) return;
  const Node* node = config.find(key);
  throw(node ? *node : config)
      .error(fmt::format("the adapter has {} {}, the task {} {}", key, theirs, name, ours), "make them the same");
}

template <typename Value>
void check_pattern(const Node& config, std::string_view key, Module module, Value theirs, Value ours) {
  if (theirs == ours) return;
  const Node* node = config.find(key);
  throw(node ? *node : config)
      .error(fmt::format("by {} the adapter has {} for {}, the task {}", key, theirs, module_name(module), ours),
             fmt::format("give the task the same {}", key));
}
void check_keys(const Node& config, const ModuleNames& names) {
  for (const auto& [key, node] : config.fields) {
    if (key == "fan_in_fan_out" && costmodel::family_names(names.architecture).transposed) continue;
    if (kHarmlessPeftKeys.contains(key) || kHeldPeftKeys.contains(key) || is_left_out(node)) continue;
    for (const auto& [refused, remedy] : kRefusedPeftKeys) {
      if (key == refused) refuse(node, key, remedy);
    }
    throw node.error(fmt::format("key '{}' is not known here and may change what the adapter computes", key),
                     "give a plain LoRA adapter without it");
  }
}
/// What PEFT and AdapterHub call a method.
std::string_view peft_type(AdapterMethod method) {
  switch (method) {
    case AdapterMethod::vera:
      return "VERA";
    case AdapterMethod::ia3:
      return "IA3";
    case AdapterMethod::prefix_tuning:
      return "PREFIX_TUNING";
    case AdapterMethod::diff_pruning:
      return "SHIRA";
    case AdapterMethod::lora:
    case AdapterMethod::dora:
    case AdapterMethod::bottleneck:
      break;
  }
  return "LORA";
}

/// Of the methods but LoRA: keys that change nothing of what the adapter computes, and those that are held against the
/// task.
const std::set<std::string_view> kHarmlessOtherKeys = {"auto_mapping",
                                                       "base_model_name_or_path",
                                                       "revision",
                                                       "inference_mode",
                                                       "peft_version",
                                                       "task_type",
                                                       "d_initial",
                                                       "init_weights",
                                                       "init_ia3_weights",
                                                       "layers_pattern",
                                                       "projection_prng_key",
                                                       "save_projection",
                                                       "vera_dropout",
                                                       "random_seed",
                                                       "mask_type",
                                                       "runtime_config",
                                                       "num_attention_heads",
                                                       "num_layers",
                                                       "token_dim",
                                                       "num_transformer_submodules",
                                                       "encoder_hidden_size"};
const std::set<std::string_view> kHeldOtherKeys = {"peft_type", "r", "target_modules", "feedforward_modules",
                                                   "num_virtual_tokens"};

void check_other_keys(const Node& config, const ModuleNames& names) {
  for (const auto& [key, node] : config.fields) {
    if (key == "fan_in_fan_out" && costmodel::family_names(names.architecture).transposed) continue;
    if (kHarmlessOtherKeys.contains(key) || kHeldOtherKeys.contains(key) || is_left_out(node)) continue;
    if (key == "bias" && node.is_scalar() && node.text == "none") continue;
    throw node.error(fmt::format("key '{}' is not known here and may change what the adapter computes", key),
                     "give an adapter without it");
  }
}

void check_targets_alike(const Node& config, const AdapterShape& adapter, const ModuleNames& names) {
  check_same(config, "target_modules", described(targets_from(config.at("target_modules"), names)), "target_modules",
             described(adapter.targets));
}

void check_other_config(const Node& config, const AdapterShape& adapter, const ModuleNames& names) {
  check_other_keys(config, names);
  if (adapter.method == AdapterMethod::prefix_tuning)
    return check_same(config, "num_virtual_tokens", config.integer_at("num_virtual_tokens", 1), "num_virtual_tokens",
                      adapter.rank);
  check_targets_alike(config, adapter, names);
  if (adapter.method != AdapterMethod::ia3)
    return check_same(config, "r", config.integer_at("r", 1), "r", adapter.rank);
  const Node* feedforward = config.find("feedforward_modules");
  check_same(config, "feedforward_modules", feedforward && scales_down_input(*feedforward, names),
             "feedforward_modules", adapter.scales_inputs);
}

/// AdapterHub's: all keys of what computes are those of its DoubleSeqBnConfig.
void check_hub_config(const Node& root, const AdapterShape& adapter) {
  const Node& config = root.at("config");
  const auto held = [&](std::string_view key, bool ours) {
    check_same(config, key, config.bool_or(key, false), key, ours);
  };
  held("mh_adapter", adapter.has(Module::o));
  held("output_adapter", adapter.has(Module::down));
  for (const char* key : {"ln_before", "ln_after", "is_parallel", "phm_layer", "use_gating", "original_ln_before",
                          "adapter_residual_before_ln"}) {
    const Node* node = config.find(key);
    if (node && !is_left_out(*node)) refuse(*node, key, "give one of DoubleSeqBnConfig, or train without it");
  }
  for (const char* key : {"dropout", "stochastic_depth"}) {
    if (config.number_or(key, 0.0) != 0) refuse(config.at(key), key, "give one without it");
  }
  for (const char* key : {"leave_out", "cross_adapter"}) {
    const Node* node = config.find(key);
    if (node && !is_left_out(*node)) refuse(*node, key, "give one of every layer");
  }
  if (const std::string activation = config.string_or("non_linearity", "swish"); activation != "swish")
    refuse(config.at("non_linearity"), fmt::format("non_linearity: {}", activation), "give one with swish");
  if (config.number_or("scaling", 1.0) != 1.0) refuse(config.at("scaling"), "scaling", "give one without it");
  if (const Node* inverse = config.find("inv_adapter"); inverse && !is_left_out(*inverse))
    refuse(*inverse, "inv_adapter", "give one without it");
}

}  // namespace

void check_peft_config(const Node& config, const AdapterShape& adapter, const ModuleNames& names) {
  if (adapter.method == AdapterMethod::bottleneck) return check_hub_config(config, adapter);
  const std::string_view wanted = peft_type(adapter.method);
  if (const std::string type = config.string_or("peft_type", ""); type != wanted)
    throw config.error(fmt::format("peft_type is '{}'", type), fmt::format("give a {} adapter", wanted));
  if (wanted != "LORA") return check_other_config(config, adapter, names);
  check_same(config, "use_dora", config.bool_or("use_dora", false), "DoRA", adapter.method == AdapterMethod::dora);
  check_keys(config, names);
  if (const std::string bias = config.string_or("bias", "none"); bias != "none")
    refuse(config.at("bias"), fmt::format("bias: {}", bias),
           "it was trained with the backbone's biases, which is not supported; train it with bias: none");
  const Node* init = config.find("init_lora_weights");
  if (init && init->is_scalar() && changes_base(init->text))
    refuse(*init, fmt::format("init_lora_weights: {}", init->text),
           "its backbone was changed when it was begun; convert it to plain LoRA on saving "
           "(path_initial_model_for_weight_conversion)");
  check_same(config, "r", config.integer_at("r", 1), "r", adapter.rank);
  check_same(config, "lora_alpha", config.number_at("lora_alpha"), "alpha", adapter.alpha);
  check_same(config, "use_rslora", config.bool_or("use_rslora", false), "rslora", adapter.rank_stabilized);
  const Node& targets = config.at("target_modules");
  check_same(config, "target_modules", described(targets_from(targets, names)), "target_modules",
             described(adapter.targets));
  AdapterShape theirs = adapter;
  theirs.module_ranks = {}, theirs.module_alphas = {};
  if (const Node* ranks = config.find("rank_pattern")) theirs.module_ranks = ranks_from(*ranks, theirs, names);
  if (const Node* alphas = config.find("alpha_pattern")) theirs.module_alphas = alphas_from(*alphas, theirs, names);
  for (const Module module : kModules) {
    if (!adapter.has(module)) continue;
    check_pattern(config, "rank_pattern", module, theirs.rank_of(module), adapter.rank_of(module));
    check_pattern(config, "alpha_pattern", module, theirs.alpha_of(module), adapter.alpha_of(module));
  }
}
}  // namespace braid::workload
