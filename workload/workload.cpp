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

/// The tasks of a search agree on it, and are more than it keeps.
void check_searches(const Node& list, const std::vector<Task>& tasks) {
  std::map<std::string, std::pair<Search, std::int64_t>> searches;  // with how many tasks
  for (const Task& task : tasks) {
    if (!task.search) continue;
    auto& [search, count] = searches.try_emplace(task.search->name, *task.search, 0).first->second;
    ++count;
    if (search != *task.search)
      throw list.error(fmt::format("the tasks of search '{}' do not agree on halving, keep and at_once", search.name),
                       "give all of them the same, or searches of their own names");
  }
  for (const auto& [name, entry] : searches) {
    if (entry.second <= entry.first.keep)
      throw list.error(fmt::format("search '{}' keeps {} of {} task{}, and so ends none", name, entry.first.keep,
                                   entry.second, entry.second == 1 ? "" : "s"),
                       "give values as lists, lower keep, or leave search out");
  }
}

TaskContext context_of(const Workload& workload, const std::filesystem::path& folder, bool files_must_exist) {
  return {.folder = folder,
          .max_position = workload.backbone.max_position,
          .sliding_window = workload.backbone.sliding_window,
          .backbone = workload.backbone,
          .modules = {workload.backbone.layers, workload.backbone.architecture},
          .files_must_exist = files_must_exist};
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
  check_searches(list, tasks);
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
  workload.tasks = read_tasks(root.at("tasks"), context_of(workload, folder, true));
  return workload;
}

std::vector<Task> read_more_tasks(const std::filesystem::path& file, const std::filesystem::path& folder,
                                  const Workload& workload) {
  Node root = read_yaml(file);
  if (root.is_null()) throw error_at(file.string(), 1, "the file is empty", "give a task, as workload.yaml has it");
  if (root.is_map() && root.find("tasks")) {
    if (const Node* backbone = root.find("backbone"))
      throw backbone->error("tasks that join a run are of its backbone", "give a file of tasks: alone");
    root.allow_only({"tasks"});
    root = Node(root.at("tasks"));
  } else if (!root.is_sequence()) {
    Node list;
    list.kind = Node::Kind::sequence;
    list.line = root.line;
    list.file = root.file;
    list.items.push_back(std::move(root));
    root = std::move(list);
  }
  std::vector<Task> tasks = read_tasks(root, context_of(workload, folder, true));
  for (const Task& task : tasks) {
    if (std::ranges::find(workload.tasks, task.name, &Task::name) != workload.tasks.end())
      throw root.error(fmt::format("the run has a task '{}' already", task.name), "give it another name");
    for (const Task& known : workload.tasks)
      if (task.search && known.search && known.search->name == task.search->name)
        throw root.error(fmt::format("search '{}' of the run has begun", task.search->name),
                         "give this one another name");
  }
  return tasks;
}

std::vector<std::size_t> first_tasks(const Workload& workload) {
  std::map<std::string, std::int64_t> training;  // by search
  std::vector<std::size_t> first;
  for (std::size_t task = 0; task < workload.tasks.size(); ++task) {
    const std::optional<Search>& search = workload.tasks[task].search;
    if (search && search->at_once > 0 && training[search->name]++ >= search->at_once) continue;
    first.push_back(task);
  }
  return first;
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
  workload.tasks = read_tasks(node.at("tasks"), context_of(workload, {}, false));
  return workload;
}

}  // namespace braid::workload
