#include "workload/import/import.h"

#include <algorithm>
#include <optional>
#include <set>

#include <boost/program_options/value_semantic.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/support/options.h"
#include "workload/workload.h"

namespace braid::cli {
namespace {

void set_learning_rates(std::vector<workload::ImportedTask>& tasks, std::optional<double> given) {
  if (given && !(*given > 0)) throw error("--lr {}: must be positive", *given);
  bool taken = false;
  for (workload::ImportedTask& task : tasks) {
    const auto names_it = [](const auto& key) { return key.first == "lr"; };
    if (std::any_of(task.optimizer.begin(), task.optimizer.end(), names_it)) continue;
    if (!given) throw error("the file of task {} names no learning rate; give it with --lr", task.name);
    task.optimizer.emplace_back("lr", fmt::format("{}", *given));
    taken = true;
  }
  if (given && !taken) throw error("--lr: every file names its learning rates; leave it out");
}

/// A relative path that exists here, as a workload in `folder` must name it.
std::string counted_from(const std::filesystem::path& folder, const std::string& backbone) {
  if (std::filesystem::path(backbone).is_absolute() || !std::filesystem::exists(backbone)) return backbone;
  return std::filesystem::proximate(backbone, folder).string();
}

}  // namespace

int run_import(const std::vector<std::string>& words) {
  CommonFlags flags;
  CommandLine line(
      "braid import FILE... --out workload.yaml [options]\nFILE is a training file of LLaMA-Factory, axolotl, mLoRA or "
      "LobRA; each becomes a task, or several",
      flags);
  std::vector<std::string> files;
  std::string backbone;
  double lr = 0;
  line.add_positionals("FILE", files);
  line.add_out("workload.yaml; rows that must be laid out anew are written beside it");
  line.add().add_options()("backbone", boost::program_options::value(&backbone),
                           "folder of the model, in place of the one that the files name");
  line.add().add_options()("lr", boost::program_options::value(&lr),
                           "learning rate of tasks whose file names none, as LobRA's");
  if (!line.parse(words)) return kSuccess;
  if (flags.out.empty()) throw error("--out is missing; give a name for the workload, such as workload.yaml");
  const std::filesystem::path out = std::filesystem::absolute(flags.out);
  if (std::filesystem::exists(out) && !flags.overwrite)
    throw error("{}: exists; give another file or --overwrite", flags.out);
  for (const std::string& file : files)
    if (std::filesystem::exists(out) && std::filesystem::exists(file) && std::filesystem::equivalent(out, file))
      throw error("--out {}: is a file that is imported; give another", flags.out);
  workload::ImportFolder folder(out.parent_path(), flags.overwrite);
  std::vector<workload::ImportedTask> tasks;
  std::set<std::string> names;
  for (const std::string& file : files) {
    workload::Imported imported = workload::import_file(std::filesystem::absolute(file), folder);
    if (backbone.empty()) backbone = imported.backbone;
    if (backbone.empty()) throw error("{}: names no model; give its folder with --backbone", file);
    if (!imported.backbone.empty() && imported.backbone != backbone && !line.given("backbone"))
      throw error("{}: is of {}, the files before it of {}; import them one by one, or give --backbone", file,
                  imported.backbone, backbone);
    for (workload::ImportedTask& task : imported.tasks) {
      // Two runs of one output folder are two tasks all the same.
      const std::string name = task.name;
      for (int copy = 2; !names.insert(task.name).second; ++copy) task.name = fmt::format("{}-{}", name, copy);
      tasks.push_back(std::move(task));
    }
    if (!flags.quiet)
      for (const std::string& note : imported.notes) fmt::print(stderr, "{} ({}): {}\n", file, imported.system, note);
  }
  backbone = counted_from(out.parent_path(), backbone);
  set_learning_rates(tasks, line.given("lr") ? std::optional(lr) : std::nullopt);
  write_file(out, workload::workload_text(backbone, tasks));
  if (flags.json) {
    nlohmann::ordered_json told = {
        {"workload", flags.out}, {"backbone", backbone}, {"tasks", nlohmann::ordered_json::array()}};
    for (const workload::ImportedTask& task : tasks) told["tasks"].push_back(task.name);
    fmt::print("{}\n", told.dump(1));
  } else {
    fmt::print("wrote {}: {} task{} on {}\n", flags.out, tasks.size(), tasks.size() == 1 ? "" : "s", backbone);
  }
  try {
    workload::read_workload(out);
  } catch (const Error& unfinished) {
    fmt::print(stderr, "before it can be planned: {}\n", unfinished.what());
  }
  return kSuccess;
}

}  // namespace braid::cli
