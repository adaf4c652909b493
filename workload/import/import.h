#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braid::workload {

/// Keys of a section of workload.yaml and their values, as YAML has them.
using Section = std::vector<std::pair<std::string, std::string>>;

/// A task that another system's file describes.
struct ImportedTask {
  std::string name;
  std::filesystem::path dataset;  ///< relative to the workload's folder where it was written there
  std::int64_t max_length = 0;
  Section adapter;
  std::int64_t global_batch_size = 0;
  std::optional<std::int64_t> steps, epochs;
  Section optimizer, objective, evaluation;  ///< `optimizer` without `lr` where the file names none
  std::int64_t seed = 0;
};

struct Imported {
  std::string system;    ///< whose file it is
  std::string backbone;  ///< as the file names it; empty: it does not
  std::vector<ImportedTask> tasks;
  std::vector<std::string> notes;  ///< what is other than there, or was not taken
};

/// Reads a training file of LLaMA-Factory, axolotl, mLoRA or LobRA. What would train otherwise here and can be said in
/// a workload is said; rows whose prompts those systems lay out in their own way are written into `folder` as they
/// would be there. Throws Error "FILE:LINE: what; remedy" for a key that would change the training and has no like
/// here, and for one that is not known.
Imported import_file(const std::filesystem::path& file, const std::filesystem::path& folder);

/// A workload.yaml of those tasks.
std::string workload_text(const std::string& backbone, const std::vector<ImportedTask>& tasks);

}  // namespace braid::workload
