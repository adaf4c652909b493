#include "planner/plan/plan_hashes.h"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "planner/plan/plan.h"

namespace braid::planner {

PlanHashes hash_plan(std::string_view plan_text) {
  const auto json = nlohmann::ordered_json::parse(plan_text);
  const auto embedded = [&](const char* key) { return hash_bytes(json.at(key).dump(2)); };
  std::string decisions;
  for (const char* key : {"policy", "deployment", "htasks", "buckets", "chunk_size", "pack_length", "skips_padding",
                          "schedule", "predicted", "lower_bound"})
    decisions += json.at(key).dump() + "\n";
  // What is not in every plan is hashed where it is.
  for (const char* key : {"dispatch", "bins", "preferred", "asked", "taken", "paused"}) {
    if (json.contains(key)) decisions += json.at(key).dump() + "\n";
  }
  return {embedded("workload"), embedded("cluster"), embedded("profile"), hash_bytes(decisions)};
}

DataHashes data_hashes(const workload::Workload& workload, const DataHashes& known) {
  DataHashes hashes;
  const auto add = [&](const std::filesystem::path& file) {
    const auto found = std::ranges::find(known, file.string(), &DataHashes::value_type::first);
    hashes.emplace_back(file.string(), found == known.end() ? hash_file(file) : found->second);
  };
  // Weights, shapes, tokenizers and chat templates.
  const auto add_folder = [&](const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".safetensors" || extension == ".json" || extension == ".model" || extension == ".jinja")
        files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const std::filesystem::path& file : files) add(file);
  };
  if (!workload.backbone_folder.empty()) add_folder(workload.backbone_folder);
  for (const workload::Task& task : workload.tasks) {
    if (!task.dataset.empty()) add(task.dataset);
    if (task.evaluation && !task.evaluation->dataset.empty()) add(task.evaluation->dataset);
    if (!task.init_from.empty()) add_folder(task.init_from);
  }
  return hashes;
}

void check_data_hashes(const Plan& plan, const DataHashes& known) {
  for (const auto& [file, hash] : plan.data_hashes) {
    if (std::ranges::find(known, std::pair(file, hash)) == known.end() && hash_file(file) != hash)
      throw error("{}: has changed since the plan was made; make the plan again with `braid plan`", file);
  }
}

}  // namespace braid::planner
