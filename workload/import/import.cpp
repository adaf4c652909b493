#include "workload/import/import.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/file.h"
#include "workload/import/settings.h"

namespace braid::workload {
namespace {

std::string map_text(const Section& section) {
  std::string text;
  for (const auto& [key, value] : section) text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", key, value);
  return "{" + text + "}";
}

/// As a scalar that YAML reads as this text.
std::string quoted_text(const std::string& text) {
  std::string safe = "\"";
  for (const char c : text) safe += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return safe + "\"";
}

Imported import_known(const Node& node, const std::filesystem::path& file, ImportFolder& folder) {
  if (!node.is_map()) throw node.error("is no training file", "give one of LLaMA-Factory, axolotl, mLoRA or LobRA");
  if (node.find("model_name_or_path")) return import_llama_factory(node, file, folder);
  if (node.find("base_model")) return import_axolotl(node, file, folder);
  if (node.find("dispatcher") && node.find("adapters")) return import_mlora(node, file, folder);
  if (node.find("task") && node.find("train_task_num")) return import_lobra(node, file, folder);
  throw node.error(
      "is no training file that braid knows",
      "give one of LLaMA-Factory (model_name_or_path), axolotl (base_model), mLoRA (dispatcher, adapters) or "
      "LobRA (train_task_num, task)");
}

/// Files may say so of how long they train.
void check_duration(const Node& node, const ImportedTask& task) {
  if (task.steps.value_or(1) > 0 && task.epochs.value_or(1) > 0) return;
  throw node.error(fmt::format("task '{}' takes no step", task.name), "give its steps or epochs");
}

}  // namespace

void ImportFolder::write(const std::filesystem::path& name, const std::string& text,
                         const std::filesystem::path& source) {
  const std::filesystem::path file = std::filesystem::weakly_canonical(path_ / name);
  read_.insert(std::filesystem::weakly_canonical(source));
  if (std::filesystem::exists(file) && read_file(file) == text) return;
  if (read_.contains(file))
    throw error("{}: is read, and would be overwritten by its rows laid out anew; give --out in another folder",
                file.string());
  if (written_.contains(file))
    throw error(
        "{}: is what two files of this import would have for unlike rows; import them into folders of their own",
        file.string());
  if (std::filesystem::exists(file) && !overwrites_)
    throw error("{}: exists, and rows laid out anew would take its name; move it away, or give --overwrite",
                file.string());
  write_file(file, text);
  written_.insert(file);
}

Imported import_file(const std::filesystem::path& file, ImportFolder& folder) {
  const Node node = read_yaml(file);
  Imported imported = import_known(node, file, folder);
  for (const ImportedTask& task : imported.tasks) check_duration(node, task);
  return imported;
}

std::string workload_text(const std::string& backbone, const std::vector<ImportedTask>& tasks) {
  std::string text = fmt::format("backbone: {}\ntasks:\n", quoted_text(backbone));
  for (const ImportedTask& task : tasks) {
    text += fmt::format("  - name: {}\n    dataset: {}\n    max_length: {}\n    on_too_long: truncate\n",
                        quoted_text(task.name), quoted_text(task.dataset.string()), task.max_length);
    text += fmt::format("    adapter: {}\n    global_batch_size: {}\n", map_text(task.adapter), task.global_batch_size);
    text += task.steps ? fmt::format("    steps: {}\n", *task.steps) : fmt::format("    epochs: {}\n", *task.epochs);
    text += fmt::format("    optimizer: {}\n", map_text(task.optimizer));
    if (!task.objective.empty()) text += fmt::format("    objective: {}\n", map_text(task.objective));
    if (!task.evaluation.empty()) text += fmt::format("    evaluation: {}\n", map_text(task.evaluation));
    text += fmt::format("    seed: {}\n", task.seed);
  }
  return text;
}

}  // namespace braid::workload
