#pragma once

#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/node.h"
#include "workload/import/import.h"

namespace braid::workload {

/// A map of another system's file. Each key is asked for, refused, or said to change no training; `finish` refuses what
/// is left.
class Settings {
 public:
  Settings(const Node& node, std::string system) : node_(node), system_(std::move(system)) {}

  /// The key's value; null where it is absent or null.
  const Node* find(std::string_view key);
  std::string text(std::string_view key, std::string otherwise);
  std::int64_t integer(std::string_view key, std::int64_t otherwise);
  /// Of samples, tokens or steps: from 1 to so many that a product of two is a number.
  std::int64_t count(std::string_view key, std::int64_t otherwise);
  double number(std::string_view key, double otherwise, double least = -std::numeric_limits<double>::infinity());
  bool flag(std::string_view key, bool otherwise = false);

  /// Throws Error where the key is there and is none of false, null, 0, "" or an empty list.
  void refuse(std::string_view key, const std::string& remedy);
  /// They may be there.
  void pass_over(std::initializer_list<std::string_view> keys);
  /// Throws Error for the first key that was not spoken of; a note names those that were passed over.
  void finish(std::vector<std::string>& notes) const;

  const Node& node() const { return node_; }

 private:
  const Node& node_;
  std::string system_;
  std::set<std::string, std::less<>> known_, passed_over_;
};

/// A number as YAML has it.
std::string yaml_number(double value);
/// "[q_proj, v_proj]" of a list or of words with commas.
std::string yaml_list(const std::vector<std::string>& words);
std::vector<std::string> words_of(const Node& node);

/// A dataset's file, relative to the workload's folder where it was written there, and how many rows it has.
struct ImportedRows {
  std::filesystem::path file;
  std::int64_t count = 0;
};

/// How long the task trains, of both ways in which files say it; returns its steps.
std::int64_t set_duration(std::int64_t most_steps, double epochs, std::int64_t steps_of_epoch, ImportedTask& task);

/// The rows of a file of JSON: a list, or lines. Throws Error.
std::vector<std::string> json_rows(const std::filesystem::path& file);
/// Such a row, which must have an instruction and an output, as Stanford Alpaca's have. Throws Error.
nlohmann::ordered_json alpaca_row(const std::string& row, std::int64_t number, const std::filesystem::path& file);

Imported import_llama_factory(const Node& node, const std::filesystem::path& file, ImportFolder& folder);
Imported import_axolotl(const Node& node, const std::filesystem::path& file, ImportFolder& folder);
Imported import_lobra(const Node& node, const std::filesystem::path& file, ImportFolder& folder);
Imported import_mlora(const Node& node, const std::filesystem::path& file, ImportFolder& folder);

}  // namespace braid::workload
