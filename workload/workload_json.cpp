#include <nlohmann/json.hpp>

#include "workload/backbone_json.h"
#include "workload/names.h"
#include "workload/workload.h"

namespace braid::workload {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const LengthDistribution& lengths) {
  Json json;
  json["dist"] = name_of(lengths.kind, kDistributions);
  if (lengths.kind != LengthDistribution::Kind::uniform) json["mean"] = lengths.mean;
  if (lengths.kind == LengthDistribution::Kind::lognormal) json["sigma"] = lengths.sigma;
  json["min"] = lengths.min;
  json["max"] = lengths.max;
  json["samples"] = lengths.samples;
  return json;
}

Json modules_of(const costmodel::AdapterShape& adapter) {
  Json modules = Json::array();
  for (const costmodel::Module module : costmodel::kModules) {
    if (adapter.has(module)) modules.push_back(costmodel::module_name(module));
  }
  return modules;
}

void add_lora(const costmodel::AdapterShape& adapter, Json& json) {
  json["r"] = adapter.rank;
  json["alpha"] = adapter.alpha;
  json["dropout"] = adapter.dropout;
  json["rslora"] = adapter.rank_stabilized;
  json["target_modules"] = modules_of(adapter);
  for (const costmodel::Module module : costmodel::kModules) {
    if (adapter.rank_of(module) != adapter.rank)
      json["rank_pattern"][costmodel::module_name(module)] = adapter.rank_of(module);
  }
  for (const costmodel::Module module : costmodel::kModules) {
    if (adapter.alpha_of(module) != adapter.alpha)
      json["alpha_pattern"][costmodel::module_name(module)] = adapter.alpha_of(module);
  }
}

Json json_of(const costmodel::AdapterShape& adapter, const std::filesystem::path& init_from) {
  using costmodel::AdapterMethod;
  Json json;
  json["type"] = name(adapter.method);
  switch (adapter.method) {
    case AdapterMethod::lora:
    case AdapterMethod::dora:
      add_lora(adapter, json);
      break;
    case AdapterMethod::vera:
      json["r"] = adapter.rank;
      json["dropout"] = adapter.dropout;
      json["target_modules"] = modules_of(adapter);
      break;
    case AdapterMethod::ia3:
      json["target_modules"] = modules_of(adapter);
      json["feedforward_modules"] = Json::array();
      if (adapter.scales_inputs) json["feedforward_modules"].push_back(module_name(costmodel::Module::down));
      break;
    case AdapterMethod::prefix_tuning:
      json["num_virtual_tokens"] = adapter.rank;
      break;
    case AdapterMethod::bottleneck:
      json["r"] = adapter.rank;
      json["mh_adapter"] = adapter.has(costmodel::Module::o);
      json["output_adapter"] = adapter.has(costmodel::Module::down);
      break;
    case AdapterMethod::diff_pruning:
      json["r"] = adapter.rank;
      json["target_modules"] = modules_of(adapter);
      break;
  }
  if (!init_from.empty()) json["init_from"] = init_from.string();
  return json;
}

Json json_of(const Optimizer& optimizer) {
  return {{"type", "adamw"},
          {"lr", optimizer.lr},
          {"weight_decay", optimizer.weight_decay},
          {"warmup_steps", optimizer.warmup_steps},
          {"schedule", name_of(optimizer.schedule, kSchedules)},
          {"max_grad_norm", optimizer.max_grad_norm},
          {"beta1", optimizer.beta1},
          {"beta2", optimizer.beta2},
          {"epsilon", optimizer.epsilon},
          {"loraplus_lr_ratio", optimizer.lora_plus_ratio}};
}

Json json_of(const Objective& objective) {
  if (objective.kind == ObjectiveKind::sft) return {{"type", "sft"}};
  return {{"type", name_of(objective.kind, kObjectives)},
          {"beta", objective.beta},
          {"label_smoothing", objective.label_smoothing}};
}

Json json_of(const Evaluation& evaluation) {
  Json json;
  if (evaluation.dataset.empty()) {
    json["fraction"] = evaluation.fraction;
  } else {
    json["dataset"] = evaluation.dataset.string();
  }
  if (evaluation.every > 0) json["every"] = evaluation.every;
  json["patience"] = evaluation.patience;
  return json;
}

/// In the words of workload.yaml, so that one reader serves both.
Json json_of(const Task& task) {
  Json json;
  json["name"] = task.name;
  if (task.lengths) {
    json["dataset"]["lengths"] = json_of(*task.lengths);
  } else {
    json["dataset"] = task.dataset.string();
  }
  json["max_length"] = task.max_length;
  json["on_too_long"] = name_of(task.on_too_long, kOnTooLong);
  json["adapter"] = json_of(task.adapter, task.init_from);
  json["global_batch_size"] = task.global_batch_size;
  if (task.steps) json["steps"] = *task.steps;
  if (task.epochs) json["epochs"] = *task.epochs;
  json["optimizer"] = json_of(task.optimizer);
  json["objective"] = json_of(task.objective);
  json["seed"] = task.seed;
  json["priority"] = task.priority;
  if (task.evaluation) json["evaluation"] = json_of(*task.evaluation);
  if (task.search) {
    json["search"] = {{"name", task.search->name},
                      {"metric", "eval_loss"},
                      {"halving", task.search->halving},
                      {"keep", task.search->keep}};
    if (task.search->at_once > 0) json["search"]["at_once"] = task.search->at_once;
  }
  if (task.chat) json["chat"] = name_of(*task.chat, kChatLayouts);
  return json;
}

}  // namespace

std::string to_json(const Task& task) {
  return json_of(task).dump(1) + "\n";
}

std::string to_json(const Workload& workload) {
  Json json;
  json["file"] = workload.file.string();
  json["backbone"] = workload.backbone_reference;
  json["backbone_folder"] = workload.backbone_folder.string();
  json["backbone_shape"] = Json::parse(to_json(workload.backbone));
  json["reproducible"] = workload.reproducible;
  if (workload.base_weights) json["base_weights"] = name_of(*workload.base_weights, kBaseWeights);
  json["tasks"] = Json::array();
  for (const Task& task : workload.tasks) json["tasks"].push_back(json_of(task));
  try {
    return json.dump(2);
  } catch (const nlohmann::json::exception&) {
    throw error("{}: a path in this workload is not UTF-8; rename it", workload.file.string());
  }
}

}  // namespace braid::workload
