#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
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

/// The workload's folder, into which rows are written that are laid out anew. What was there before stays, unless it is
/// to be overwritten and is no file that rows are read of.
class ImportFolder {
 public:
  explicit ImportFolder(std::filesystem::path path, bool overwrites = false)
      : path_(std::move(path)), overwrites_(overwrites) {}
  /// Rows of the file `source`. Throws Error where other rows have the name.
  void write(const std::filesystem::path& name, const std::string& text, const std::filesystem::path& source);

 private:
  std::filesystem::path path_;
  bool overwrites_;
  std::set<std::filesystem::path> written_, read_;
};

/// Reads a training file of LLaMA-Factory, axolotl, mLoRA or LobRA. What would train otherwise here and can be said in
/// a workload is said; rows whose prompts those systems lay out in their own way are written into `folder` as they
/// would be there. Throws Error "FILE:LINE: what; remedy" for a key that would change the training and has no like
/// here, and for one that is not known.
Imported import_file(const std::filesystem::path& file, ImportFolder& folder);

/// A workload.yaml of those tasks.
std::string workload_text(const std::string& backbone, const std::vector<ImportedTask>& tasks);

}  // namespace braid::workload
