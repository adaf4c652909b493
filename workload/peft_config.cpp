#include "workload/peft_config.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "base/regex.h"
#include "costmodel/shapes/family.h"

namespace braid::workload {
namespace {

using costmodel::AdapterShape;
using costmodel::kModuleCount;
using costmodel::kModules;
using costmodel::Module;
using costmodel::module_name;

constexpr std::string_view kAllLinear = "all-linear";

std::string listed(const ModuleNames& names) {
  std::vector<std::string_view> all;
  for (const Module module : names.own_modules()) all.push_back(costmodel::target_name(names.architecture, module));
  return fmt::format("{}", fmt::join(all, ", "));
}

using Selects = std::function<bool(std::string_view name)>;

bool selects_any(const Selects& selects, const std::vector<std::string>& all) {
  return std::any_of(all.begin(), all.end(), selects);
}

/// What `selects` says of a module in every layer alike.
bool selects_module(const Node& node, Module module, const ModuleNames& names, const Selects& selects) {
  std::int64_t selected = 0;
  for (std::int64_t layer = 0; layer < names.layers; ++layer)
    selected += selects_any(selects, names.full_names(layer, module));
  if (selected != 0 && selected != names.layers)
    throw node.error(
        fmt::format("target_modules selects {} in {} of {} layers", module_name(module), selected, names.layers),
        "adapters of some layers alone are not supported; select a module in all of them");
  return selected > 0;
}

void refuse_outside_layers(const Node& node, const ModuleNames& names, const Selects& selects) {
  const costmodel::FamilyNames& family = costmodel::family_names(names.architecture);
  for (const std::string& name :
       {std::string(costmodel::kHeadName), fmt::format("{}{}", family.model, family.embedding),
        fmt::format("{}{}", family.model, family.positions)}) {
    if (name != family.model && selects(name))
      throw node.error(fmt::format("target_modules selects {}", name),
                       "adapters sit on the linear layers of decoder layers alone; leave it out");
  }
}

bool ends_as(std::string_view name, std::string_view end) {
  return name == end || (name.size() > end.size() && name.ends_with(end) && name[name.size() - end.size() - 1] == '.');
}

std::string lower_case(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

/// Two adapters on one product cannot be told apart in PEFT's file.
void check_apart(const Node& node, const std::array<bool, kModuleCount>& targets) {
  const auto has = [&](Module module) { return targets[static_cast<std::size_t>(module)]; };
  if (has(Module::qkv) && (has(Module::q) || has(Module::k) || has(Module::v)))
    throw node.error("target_modules selects c_attn and parts of it",
                     "keep c_attn, which is q_proj, k_proj and v_proj");
}

std::array<bool, kModuleCount> targets_of_expression(const Node& node, const ModuleNames& names) {
  std::optional<Regex> expression;
  try {
    expression.emplace(node.text);
  } catch (const BrokenRegex& broken) {
    throw node.error("target_modules " + std::string(broken.what()),
                     fmt::format("give a list of {}, or {}", listed(names), kAllLinear));
  }
  const Selects selects = [&](std::string_view name) { return expression->matches(name); };
  refuse_outside_layers(node, names, selects);
  std::array<bool, kModuleCount> targets{};
  for (const Module module : names.modules())
    targets[static_cast<std::size_t>(module)] = selects_module(node, module, names, selects);
  if (std::find(targets.begin(), targets.end(), true) == targets.end())
    throw node.error(fmt::format("the regular expression '{}' matches no whole name, such as {}", node.text,
                                 names.full_names(0, names.own_modules().front()).front()),
                     fmt::format("begin it with .* perhaps, or give a list of {}", listed(names)));
  check_apart(node, targets);
  return targets;
}

std::array<bool, kModuleCount> targets_of_list(const Node& node, const ModuleNames& names) {
  std::array<bool, kModuleCount> targets{};
  if (node.items.empty())
    throw node.error("target_modules is empty",
                     fmt::format("name at least one module, such as {}",
                                 costmodel::target_name(names.architecture, names.own_modules().front())));
  std::vector<std::string> ends;
  for (const Node& item : node.items) {
    const std::string end = item.as_string("target_modules");
    if (std::find(ends.begin(), ends.end(), end) != ends.end())
      throw item.error(fmt::format("module '{}' is given twice", end), "keep one");
    const Selects selects = [&](std::string_view name) { return ends_as(name, end); };
    refuse_outside_layers(item, names, selects);
    if (costmodel::family_names(names.architecture).name(Module::gate).empty() && end == module_name(Module::gate))
      throw item.error("this backbone has no gate_proj", fmt::format("valid: {}", listed(names)));
    bool found = false;
    for (std::int64_t layer = 0; layer < names.layers && !found; ++layer) {
      for (const Module module : names.modules())
        found = found || selects_any(selects, names.full_names(layer, module));
    }
    if (!found) throw item.error(fmt::format("unknown module '{}'", end), fmt::format("valid: {}", listed(names)));
    ends.push_back(end);
  }
  const Selects selects = [&](std::string_view name) {
    return std::any_of(ends.begin(), ends.end(), [&](const std::string& end) { return ends_as(name, end); });
  };
  for (const Module module : names.modules())
    targets[static_cast<std::size_t>(module)] = selects_module(node, module, names, selects);
  check_apart(node, targets);
  return targets;
}

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

std::string described(const std::array<bool, kModuleCount>& targets) {
  std::vector<std::string_view> all;
  for (const Module module : kModules) {
    if (targets[static_cast<std::size_t>(module)]) all.push_back(module_name(module));
  }
  return fmt::format("{}", fmt::join(all, " "));
}

struct Pattern {
  const Node& node;
  std::string_view key;
  std::string_view example;
};

/// For each target the value of the first key that its name ends with, as a regular expression; 0 where there is none,
/// or where it is `otherwise`.
template <typename Value, typename Read>
std::array<Value, kModuleCount> pattern_from(const Pattern& pattern, const AdapterShape& adapter,
                                             const ModuleNames& names, Value otherwise, const Read& read) {
  const auto& [node, key, example] = pattern;
  std::array<Value, kModuleCount> values{};
  if (node.is_null()) return values;
  if (!node.is_map()) throw node.error(fmt::format("{} is no map", key), fmt::format("give {}", example));
  struct Entry {
    std::unique_ptr<Regex> name;
    Value value;
    bool used = false;
  };
  std::vector<Entry> entries;
  for (const auto& [name, value] : node.fields) {
    try {
      entries.push_back({std::make_unique<Regex>(fmt::format("(.*\\.)?({})", name)), read(value)});
    } catch (const BrokenRegex& broken) {
      throw value.error(fmt::format("{}: {}", key, broken.what()), "give a module's name, such as q_proj");
    }
  }
  for (const Module module : kModules) {
    if (!adapter.has(module)) continue;
    std::optional<Value> everywhere;
    for (std::int64_t layer = 0; layer < names.layers; ++layer) {
      const std::vector<std::string> all = names.full_names(layer, module);
      Value value = otherwise;
      for (Entry& entry : entries) {
        if (!selects_any([&](std::string_view name) { return entry.name->matches(name); }, all)) continue;
        entry.used = true, value = entry.value;
        break;
      }
      if (everywhere.value_or(value) != value)
        throw node.error(
            fmt::format("{} gives {} one value in some layers and another in others", key, module_name(module)),
            "give a module the same in all layers");
      everywhere = value;
    }
    if (everywhere != otherwise) values[static_cast<std::size_t>(module)] = *everywhere;
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].used)
      throw node.fields[i].second.error(
          fmt::format("{}: '{}' is none of the targets {}", key, node.fields[i].first, described(adapter.targets)),
          "remove it, or add the module to target_modules");
  }
  return values;
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

}  // namespace

std::vector<Module> ModuleNames::own_modules() const {
  std::vector<Module> own;
  for (const Module module : kModules) {
    if (!costmodel::family_names(architecture).name(module).empty()) own.push_back(module);
  }
  return own;
}

std::vector<Module> ModuleNames::modules() const {
  std::vector<Module> all = own_modules();
  if (!costmodel::family_names(architecture).qkv.empty()) all.insert(all.begin(), {Module::q, Module::k, Module::v});
  return all;
}

std::vector<std::string> ModuleNames::full_names(std::int64_t layer, Module module) const {
  using costmodel::Architecture;
  const std::string_view own = costmodel::family_names(architecture).name(module),
                         llama = costmodel::family_names(Architecture::llama).name(module);
  std::vector<std::string> all;
  if (!own.empty()) all.push_back(costmodel::layer_prefix(architecture, layer) + std::string(own));
  if (own != llama && !llama.empty())
    all.push_back(costmodel::layer_prefix(Architecture::llama, layer) + std::string(llama));
  // Plans name it so.
  if (module == Module::qkv)
    all.push_back(costmodel::layer_prefix(architecture, layer) + std::string(module_name(module)));
  return all;
}

std::array<bool, kModuleCount> attention_targets(const ModuleNames& names) {
  std::array<bool, kModuleCount> targets{};
  for (const Module module : names.own_modules())
    targets[static_cast<std::size_t>(module)] = module < Module::gate || module == Module::qkv;
  return targets;
}

std::array<bool, kModuleCount> targets_from(const Node& node, const ModuleNames& names) {
  if (!node.is_scalar()) {
    node.sequence("target_modules");
    return targets_of_list(node, names);
  }
  if (lower_case(node.text) != kAllLinear) return targets_of_expression(node, names);
  std::array<bool, kModuleCount> targets{};
  for (const Module module : names.own_modules()) targets[static_cast<std::size_t>(module)] = true;
  return targets;
}

std::array<bool, kModuleCount> ia3_targets(const ModuleNames& names) {
  std::array<bool, kModuleCount> targets{};
  for (const Module module : names.own_modules())
    targets[static_cast<std::size_t>(module)] =
        module == Module::k || module == Module::v || module == Module::qkv || module == Module::down;
  return targets;
}

bool scales_down_input(const Node& node, const ModuleNames& names) {
  if (node.is_null() || (node.is_sequence() && node.items.empty())) return false;
  const std::array<bool, kModuleCount> targets = targets_from(node, names);
  for (const Module module : kModules) {
    if (targets[static_cast<std::size_t>(module)] && module != Module::down)
      throw node.error(fmt::format("feedforward_modules names {}, whose input other modules read too",
                                   costmodel::target_name(names.architecture, module)),
                       fmt::format("name {} alone", costmodel::target_name(names.architecture, Module::down)));
  }
  return targets[static_cast<std::size_t>(Module::down)];
}

std::array<double, kModuleCount> alphas_from(const Node& node, const AdapterShape& adapter, const ModuleNames& names) {
  return pattern_from<double>({node, "alpha_pattern", "{q_proj: 64}, a module's name and its alpha"}, adapter, names,
                              adapter.alpha, [](const Node& alpha) {
                                const double value = alpha.as_number("alpha_pattern");
                                if (value <= 0)
                                  throw alpha.error(fmt::format("alpha_pattern {} is not usable", value),
                                                    "give an alpha above 0");
                                return value;
                              });
}

std::array<std::int64_t, kModuleCount> ranks_from(const Node& node, const AdapterShape& adapter,
                                                  const ModuleNames& names) {
  return pattern_from<std::int64_t>({node, "rank_pattern", "{q_proj: 8}, a module's name and its rank"}, adapter, names,
                                    adapter.rank,
                                    [](const Node& rank) { return rank.as_integer("rank_pattern", 1, kMostRank); });
}

namespace {

using costmodel::AdapterMethod;

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
