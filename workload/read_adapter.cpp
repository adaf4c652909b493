#include "workload/read_adapter.h"

#include <map>

#include "workload/spellings.h"

namespace braid::workload {
namespace {

using costmodel::AdapterMethod;
using costmodel::AdapterShape;
using costmodel::Module;

AdapterMethod read_method(const Node& node) {
  const std::string type = node.string_or("type", "lora");
  std::string valid;
  for (int i = 0; i < costmodel::kAdapterMethodCount; ++i) {
    const auto method = static_cast<AdapterMethod>(i);
    if (name(method) == type) return method;
    valid += (valid.empty() ? "" : ", ") + std::string(name(method));
  }
  throw node.at("type").error(fmt::format("unknown adapter type '{}'", type), "valid: " + valid);
}

void allow_keys(const Node& node, AdapterMethod method) {
  switch (method) {
    case AdapterMethod::lora:
    case AdapterMethod::dora:
      return allow_only_ours(
          node, "adapter",
          {"type", "r", "alpha", "dropout", "rslora", "target_modules", "rank_pattern", "alpha_pattern", "init_from"});
    case AdapterMethod::vera:
      return allow_only_ours(node, "adapter", {"type", "r", "dropout", "target_modules", "init_from"});
    case AdapterMethod::ia3:
      return allow_only_ours(node, "adapter", {"type", "target_modules", "feedforward_modules", "init_from"});
    case AdapterMethod::prefix_tuning:
      return allow_only_ours(node, "adapter", {"type", "num_virtual_tokens", "init_from"});
    case AdapterMethod::bottleneck:
      return allow_only_ours(node, "adapter", {"type", "r", "mh_adapter", "output_adapter", "init_from"});
    case AdapterMethod::diff_pruning:
      return allow_only_ours(node, "adapter", {"type", "r", "target_modules", "init_from"});
  }
}

/// In 1..kMostRank.
std::int64_t read_rank(const Node& node, const char* key) {
  const Node& rank = node.at(key);
  const std::int64_t value = rank.as_integer(key);
  const char* word = std::string_view(key) == "r" ? "rank" : key;
  if (value < 1) throw rank.error(fmt::format("{} {} is not usable", word, value), fmt::format("give {} >= 1", key));
  if (value > kMostRank)
    throw rank.error(fmt::format("{} {} is not usable", word, value), fmt::format("give {} <= {}", key, kMostRank));
  return value;
}

/// In [0, 1).
double read_dropout(const Node& node) {
  const double value = node.number_or("dropout", 0.0);
  if (value >= 0 && value < 1) return value;
  throw node.at("dropout").error(fmt::format("dropout {} is not usable", value), "give 0 <= dropout < 1");
}

void read_lora(const Node& node, const TaskContext& context, AdapterShape& adapter) {
  adapter.alpha = node.number_or("alpha", 2.0 * static_cast<double>(adapter.rank));
  if (adapter.alpha <= 0)
    throw node.at("alpha").error(fmt::format("alpha {} is not usable", adapter.alpha), "give alpha above 0");
  adapter.rank_stabilized = node.bool_or("rslora", false);
  if (const Node* ranks = node.find("rank_pattern"))
    adapter.module_ranks = ranks_from(*ranks, adapter, context.modules);
  if (const Node* alphas = node.find("alpha_pattern"))
    adapter.module_alphas = alphas_from(*alphas, adapter, context.modules);
}

/// PEFT's IA³ of most families: keys, values, and the input of the feed-forward layer's last product.
void read_ia3(const Node& node, const TaskContext& context, AdapterShape& adapter) {
  if (!node.find("target_modules")) adapter.targets = ia3_targets(context.modules);
  const Node* feedforward = node.find("feedforward_modules");
  adapter.scales_inputs = feedforward ? scales_down_input(*feedforward, context.modules) : adapter.has(Module::down);
  if (adapter.scales_inputs && !adapter.has(Module::down))
    throw feedforward->error("feedforward_modules names what target_modules does not", "add it to target_modules");
}

/// AdapterHub's DoubleSeqBnConfig: after attention and after the feed-forward layer.
void read_sites(const Node& node, AdapterShape& adapter) {
  const auto site = [&](Module module) -> bool& { return adapter.targets[static_cast<std::size_t>(module)]; };
  site(Module::o) = node.bool_or("mh_adapter", true);
  site(Module::down) = node.bool_or("output_adapter", true);
  if (!adapter.has(Module::o) && !adapter.has(Module::down))
    throw node.error("the adapter is neither after attention nor after the feed-forward layer",
                     "set mh_adapter or output_adapter");
}

void check_differences(const Node& node, const AdapterShape& adapter, const TaskContext& context) {
  for (const Module module : costmodel::kModules) {
    if (!adapter.has(module) || context.backbone.hidden == 0) continue;
    const costmodel::ModuleShape weight = module_shape(context.backbone, module);
    if (2 * adapter.differences(context.backbone, module) > weight.in * weight.out)
      throw node.at("r").error(
          fmt::format("r {} gives {} a difference of {} numbers, more than half of its weight", adapter.rank,
                      module_name(module), adapter.differences(context.backbone, module)),
          "lower r");
  }
}

}  // namespace

AdapterShape read_adapter(const Node& node, const TaskContext& context, std::filesystem::path& init_from) {
  AdapterShape adapter;
  adapter.method = read_method(node);
  allow_keys(node, adapter.method);
  if (const Node* list = node.find("target_modules"); list && !list->is_null()) {
    adapter.targets = targets_from(*list, context.modules);
  } else {
    adapter.targets = attention_targets(context.modules);
  }
  if (adapter.method == AdapterMethod::prefix_tuning) {
    adapter.targets = {};
    adapter.rank = read_rank(node, "num_virtual_tokens");
  } else if (adapter.method != AdapterMethod::ia3) {
    adapter.rank = read_rank(node, "r");
  }
  adapter.dropout = read_dropout(node);
  if (adapter.method == AdapterMethod::lora || adapter.method == AdapterMethod::dora) read_lora(node, context, adapter);
  if (adapter.method == AdapterMethod::ia3) read_ia3(node, context, adapter);
  if (adapter.method == AdapterMethod::bottleneck) adapter.targets = {}, read_sites(node, adapter);
  if (adapter.method == AdapterMethod::diff_pruning) check_differences(node, adapter, context);

  const std::string folder = node.string_or("init_from", "");
  if (folder.empty()) return adapter;
  init_from = resolve(context.folder, folder);
  if (!context.files_must_exist) return adapter;
  if (!std::filesystem::exists(init_from / "adapter_config.json")) {
    throw node.at("init_from")
        .error(fmt::format("{} holds no adapter_config.json", init_from.string()), "give the folder of a PEFT adapter");
  }
  check_peft_config(read_json(init_from / "adapter_config.json"), adapter, context.modules);
  return adapter;
}

}  // namespace braid::workload
