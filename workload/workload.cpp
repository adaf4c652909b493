#include "workload/workload.h"

#include <algorithm>
#include <map>

#include "workload/backbone_json.h"
#include "workload/names.h"
#include "workload/read_task.h"
#include "workload/spellings.h"
#include "workload/sweep.h"

namespace braid::workload {
namespace {

void read_reference(const Node& node, const std::filesystem::path& folder, Workload& workload) {
  workload.backbone_reference = node.as_string("backbone");
  const std::filesystem::path there = resolve(folder, workload.backbone_reference);
  if (!workload.backbone_reference.empty() && std::filesystem::is_directory(there)) {
    workload.backbone_folder = costmodel::backbone_folder(there);
    workload.backbone = costmodel::read_backbone(workload.backbone_folder);
    return;
  }
  const std::vector<std::string> known = costmodel::builtin_backbone_names();
  if (std::find(known.begin(), known.end(), workload.backbone_reference) == known.end()) {
    throw node.error(
        fmt::format("unknown backbone '{}': no such folder, and no built-in shape", workload.backbone_reference),
        fmt::format("give a Hugging Face folder or one of: {}", fmt::join(known, ", ")));
  }
  workload.backbone = costmodel::builtin_backbone(workload.backbone_reference);
}

std::vector<Task> read_tasks(const Node& list, const TaskContext& context) {
  std::vector<Task> tasks;
  std::map<std::string, int> lines;
  for (const Node& written : list.sequence("tasks")) {
    for (const Node& node : expand_sweep(written)) {
      tasks.push_back(read_task(node, context));
      const Node& name = node.at("name");
      const auto [first, fresh] = lines.emplace(tasks.back().name, name.line);
      if (!fresh) {
        throw name.error(fmt::format("task name '{}' is taken (line {})", first->first, first->second),
                         "give every task a name of its own");
      }
    }
  }
  if (tasks.empty()) throw list.error("'tasks' is empty", "give at least one task");
  return tasks;
}

std::optional<costmodel::DataType> read_base_weights(const Node& node) {
  const Node* given = node.find("base_weights");
  if (!given) return std::nullopt;
  return value_of(*given, "base_weights", kBaseWeights);
}

}  // namespace

Workload read_workload(const std::filesystem::path& file) {
  const Node root = read_yaml(file);
  if (root.is_null()) throw error_at(file.string(), 1, "the file is empty", "give backbone and tasks");
  allow_only_ours(root, "", {"backbone", "base_weights", "reproducible", "tasks"});
  Workload workload;
  workload.file = resolve({}, file);
  const std::filesystem::path folder = workload.file.parent_path();
  read_reference(root.at("backbone"), folder, workload);
  workload.reproducible = root.bool_or("reproducible", false);
  workload.base_weights = read_base_weights(root);
  workload.tasks = read_tasks(root.at("tasks"), {.folder = folder,
                                                 .max_position = workload.backbone.max_position,
                                                 .sliding_window = workload.backbone.sliding_window,
                                                 .backbone = workload.backbone,
                                                 .modules = {workload.backbone.layers, workload.backbone.architecture},
                                                 .files_must_exist = true});
  return workload;
}

std::string published_name(const Workload& workload) {
  const std::filesystem::path& folder = workload.backbone_folder;
  if (folder.empty()) return workload.backbone_reference;
  // The hub's cache lays models--ORGANISATION--NAME/snapshots/COMMIT out; names may hold -- themselves.
  const std::string repository = folder.parent_path().parent_path().filename();
  constexpr std::string_view kModels = "models--";
  if (folder.parent_path().filename() != "snapshots" || !repository.starts_with(kModels)) return folder.string();
  std::string name = repository.substr(kModels.size());
  if (const std::size_t slash = name.find("--"); slash != std::string::npos) name.replace(slash, 2, "/");
  return name;
}

Workload workload_from(const Node& node) {
  node.allow_only({"file", "backbone", "backbone_folder", "backbone_shape", "base_weights", "reproducible", "tasks"});
  Workload workload;
  workload.file = node.string_at("file");
  workload.backbone_reference = node.string_at("backbone");
  workload.backbone_folder = node.string_at("backbone_folder");
  workload.backbone = backbone_from(node.at("backbone_shape"));
  workload.reproducible = node.bool_or("reproducible", false);
  workload.base_weights = read_base_weights(node);
  workload.tasks = read_tasks(node.at("tasks"), {.folder = {},
                                                 .max_position = workload.backbone.max_position,
                                                 .sliding_window = workload.backbone.sliding_window,
                                                 .backbone = workload.backbone,
                                                 .modules = {workload.backbone.layers, workload.backbone.architecture},
                                                 .files_must_exist = false});
  return workload;
}

}  // namespace braid::workload
