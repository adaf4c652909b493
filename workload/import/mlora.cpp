#include <algorithm>

#include <fmt/core.h>

#include "workload/import/settings.h"

namespace braid::workload {
namespace {

namespace fs = std::filesystem;

const Node& mlora_entry(const Node& list, const std::string& name, std::string_view what) {
  for (const Node& one : list.sequence(what))
    if (one.string_at("name") == name) return one;
  throw list.error(fmt::format("{} are without '{}'", what, name), "add it");
}

void read_mlora_adapter(const Node& node, ImportedTask& task, std::vector<std::string>& notes) {
  Settings settings(node, "mLoRA");
  const std::string type = settings.text("type", "lora");
  if (type != "lora" && type != "loraplus" && type != "dora" && type != "vera")
    throw node.at("type").error(fmt::format("adapters of type {} are not supported", type),
                                "give lora, loraplus, dora or vera");
  task.adapter = {{"type", type == "loraplus" ? "lora" : type}, {"r", std::to_string(node.integer_at("r"))}};
  const double alpha = settings.number("alpha", 0);
  if (type != "vera" && alpha > 0) task.adapter.emplace_back("alpha", yaml_number(alpha));
  task.adapter.emplace_back("dropout", yaml_number(settings.number("dropout", 0)));
  std::vector<std::string> modules;
  for (const auto& [module, used] : node.at("target_modules").fields)
    if (used.as_bool(module)) modules.push_back(module);
  task.adapter.emplace_back("target_modules", yaml_list(modules));
  if (const std::string optimizer = settings.text("optimizer", "adamw"); optimizer != "adamw")
    throw node.at("optimizer").error(fmt::format("optimizer {} is not supported", optimizer), "give adamw");
  const std::string schedule = settings.text("lrscheduler", "none");
  if (schedule != "none" && schedule != "cosine")
    throw node.at("lrscheduler").error(fmt::format("schedule {} is not supported", schedule), "give none or cosine");
  if (settings.number("eta_min", 0) > 0)
    throw node.at("eta_min").error("a schedule that ends above 0 is not supported", "give 0");
  if (schedule == "cosine")
    notes.push_back(fmt::format("{}: the schedule falls to 0 at the last step; mLoRA's at step t_max", task.name));
  settings.integer("t_max", 0);
  // AdamW's weight decay is PyTorch's default there.
  task.optimizer = {{"type", "adamw"},
                    {"lr", yaml_number(node.number_at("lr"))},
                    {"weight_decay", "0.01"},
                    {"schedule", schedule == "none" ? "constant" : "cosine"}};
  if (type == "loraplus") task.optimizer.emplace_back("loraplus_lr_ratio", yaml_number(settings.number("lr_ratio", 8)));
  settings.pass_over({"name", "path", "r", "lr", "target_modules"});
  settings.finish(notes);
}

}  // namespace

Imported import_mlora(const Node& node, const fs::path& file, ImportFolder&) {
  Imported imported{"mLoRA", "", {}, {}};
  node.allow_only({"dispatcher", "datasets", "adapters", "tasks"});
  std::int64_t number = 0;
  for (const Node& entry : node.at("tasks").sequence("tasks")) {
    Settings settings(entry, "mLoRA");
    const std::string type = settings.text("type", "train");
    if (type != "train" && type != "dpo")
      throw entry.at("type").error(fmt::format("tasks of type {} are not supported", type), "give train or dpo");
    ImportedTask task;
    task.name = settings.text("name", fmt::format("task{}", number++));
    const Node& dataset = mlora_entry(node.at("datasets"), entry.string_at("dataset"), "datasets");
    task.dataset = file.parent_path() / dataset.string_at("data");
    imported.notes.push_back(fmt::format(
        "{}: rows are laid out as braid does; where {} says otherwise, give {} rows of prompt and completion",
        task.name, dataset.string_or("prompt", "the prompt file"), task.dataset.string()));
    task.max_length = settings.count("cutoff_len", 256);
    task.global_batch_size = settings.count("batch_size", 16);
    task.epochs = settings.integer("num_epochs", 1);
    if (type == "dpo") {
      task.objective = {{"type", "dpo"},
                        {"beta", yaml_number(settings.number("beta", 0.1))},
                        {"label_smoothing", yaml_number(settings.number("label_smoothing", 0))}};
      if (const std::string loss = settings.text("loss_type", "sigmoid"); loss != "sigmoid")
        throw entry.at("loss_type").error(fmt::format("loss_type {} is not supported", loss), "give sigmoid");
      settings.refuse("reference", "leave it out: the reference is the model as the task begins");
    }
    read_mlora_adapter(mlora_entry(node.at("adapters"), entry.string_at("adapter"), "adapters"), task, imported.notes);
    settings.pass_over({"adapter", "dataset", "mini_batch_size", "save_step"});
    settings.finish(imported.notes);
    imported.tasks.push_back(std::move(task));
  }
  imported.notes.emplace_back(
      "dispatcher.concurrency_num was not taken: `braid plan --policy mlora` runs as many at once as fit memory");
  return imported;
}

}  // namespace braid::workload
