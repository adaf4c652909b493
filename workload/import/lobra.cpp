#include <algorithm>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "workload/import/settings.h"

namespace braid::workload {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// LobRA's scripts run in its folder, which has `trainer_config` with these files and `data` beside it.
fs::path lobra_data(const Node& node, const std::string& name, const fs::path& file) {
  for (const fs::path& folder : {file.parent_path().parent_path(), file.parent_path()})
    for (const char* ending : {".json", ".jsonl"})
      if (const fs::path data = folder / "data" / name / (name + ending); fs::is_regular_file(data)) return data;
  throw node.error(fmt::format("there is no data/{}/{}.json beside the file's folder", name, name),
                   "put the rows there, as LobRA's scripts do");
}

/// Rows are whole texts under `key`; written anew where that is not what braid calls them.
fs::path lobra_rows(const fs::path& data, const std::string& name, const std::string& key, ImportFolder& folder) {
  std::string text;
  std::size_t number = 0;
  for (const std::string& line : json_rows(data)) {
    const Json row = Json::parse(line);
    ++number;
    if (!row.is_object() || !row.contains(key) || !row.at(key).is_string())
      throw error("{}: row {} has no text '{}'; give json_key the name of its text", data.string(), number, key);
    text += Json{{"text", row.at(key)}}.dump() + "\n";
  }
  if (key == "text") return data;
  const std::string written = fmt::format("{}-{}.jsonl", name, key);
  folder.write(written, text, data);
  return written;
}

std::vector<std::string> lobra_modules(const Node& list, bool fused) {
  std::vector<std::string> modules;
  const auto add = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (std::find(modules.begin(), modules.end(), name) == modules.end()) modules.emplace_back(name);
  };
  for (const Node& item : list.sequence("target_modules")) {
    const std::string module = item.as_string("target_modules");
    if (fused && module == "qkv_proj") {
      add({"q_proj", "k_proj", "v_proj"});
    } else if (module == "dense_h_to_4h") {
      add({"gate_proj", "up_proj"});
    } else if (module == "dense_4h_to_h") {
      add({"down_proj"});
    } else if (module == "o_proj") {
      add({"o_proj"});
    } else if (!fused && (module == "q_proj" || module == "k_proj" || module == "v_proj")) {
      add({module.c_str()});
    } else {
      throw item.error(fmt::format("LobRA has no module {} in variant {}", module, fused ? "fused" : "canonical"),
                       fused ? "give qkv_proj, o_proj, dense_h_to_4h or dense_4h_to_h"
                             : "give q_proj, k_proj, v_proj, o_proj, dense_h_to_4h or dense_4h_to_h");
    }
  }
  return modules;
}

}  // namespace

Imported import_lobra(const Node& node, const fs::path& file, ImportFolder& folder) {
  Imported imported{"LobRA", "", {}, {}};
  node.allow_only({"variant", "train_task_num", "task"});
  const std::string variant = node.string_or("variant", "canonical");
  if (variant != "canonical" && variant != "fused")
    throw node.at("variant").error(fmt::format("unknown variant {}", variant), "give canonical or fused");
  const std::vector<Node>& tasks = node.at("task").sequence("task");
  if (const Node* count = node.find("train_task_num");
      count && count->as_integer("train_task_num") != std::ssize(tasks))
    throw count->error(fmt::format("says {} tasks, and there are {}", count->text, tasks.size()), "make them alike");
  std::set<std::string> joined;
  if (tasks.empty()) throw node.at("task").error("there is no task", "add one");
  for (const Node& entry : tasks) {
    Settings settings(entry, "LobRA");
    ImportedTask task;
    const std::string name = entry.string_at("dataset_name");
    const Node& dataset = entry.at("dataset_name");
    if (name.empty()) throw dataset.error("the task has no dataset, and LobRA trains nothing of it", "name one");
    task.name = name;
    task.dataset = lobra_rows(lobra_data(dataset, name, file), name, settings.text("json_key", "text"), folder);
    task.max_length = entry.integer_at("context_length", 1);
    task.global_batch_size = entry.integer_at("global_batch_size", 1);
    task.steps = entry.integer_at("steps") * settings.integer("epochs", 1);
    const Node& modules = entry.at("target_modules");
    for (const Node& item : modules.sequence("target_modules"))
      if (item.text == "dense_h_to_4h" || item.text == "qkv_proj") joined.insert(item.text);
    task.adapter = {{"type", "lora"},
                    {"r", std::to_string(entry.integer_at("rank", 1))},
                    {"alpha", yaml_number(settings.number("lora_alpha", 8))},
                    {"target_modules", yaml_list(lobra_modules(modules, variant == "fused"))}};
    // Adam without decay; the learning rate stands on LobRA's command line.
    task.optimizer = {{"type", "adamw"}, {"weight_decay", "0"}, {"schedule", "constant"}};
    settings.pass_over(
        {"dataset_name", "context_length", "global_batch_size", "steps", "rank", "lora_alpha", "target_modules"});
    settings.finish(imported.notes);
    imported.tasks.push_back(std::move(task));
  }
  for (const std::string& module : joined)
    imported.notes.push_back(fmt::format(
        "{}: each of the products that LobRA joins has an A of its own here, there they share one", module));
  imported.notes.emplace_back("texts are tokenized as the backbone's folder says; LobRA takes GPT-2's tokens");
  return imported;
}

}  // namespace braid::workload
