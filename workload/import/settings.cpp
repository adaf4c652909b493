#include "workload/import/settings.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace braid::workload {
namespace {

bool says_nothing(const Node& value) {
  if (value.is_null()) return true;
  if (value.is_scalar())
    return value.text.empty() || value.text == "false" || value.text == "False" || value.text == "0" ||
           value.text == "null";
  return value.items.empty() && value.fields.empty();
}

}  // namespace

const Node* Settings::find(std::string_view key) {
  known_.emplace(key);
  const Node* value = node_.find(key);
  return value && !value->is_null() ? value : nullptr;
}

std::string Settings::text(std::string_view key, std::string otherwise) {
  const Node* value = find(key);
  return value ? value->text : otherwise;
}

std::int64_t Settings::integer(std::string_view key, std::int64_t otherwise) {
  const Node* value = find(key);
  return value ? value->as_integer(key) : otherwise;
}

std::int64_t Settings::count(std::string_view key, std::int64_t otherwise) {
  const Node* value = find(key);
  return value ? value->as_integer(key, 1, std::numeric_limits<std::int32_t>::max()) : otherwise;
}

double Settings::number(std::string_view key, double otherwise, double least) {
  const Node* value = find(key);
  return value ? value->as_number(key, least) : otherwise;
}

bool Settings::flag(std::string_view key, bool otherwise) {
  const Node* value = find(key);
  return value ? value->as_bool(key) : otherwise;
}

void Settings::refuse(std::string_view key, const std::string& remedy) {
  const Node* value = find(key);
  if (value && !says_nothing(*value))
    throw value->error(fmt::format("{} of {} is not supported", key, system_), remedy);
}

void Settings::pass_over(std::initializer_list<std::string_view> keys) {
  passed_over_.insert(keys.begin(), keys.end());
}

void Settings::finish(std::vector<std::string>& notes) const {
  std::vector<std::string> left;
  for (const auto& [key, value] : node_.fields) {
    if (known_.contains(key)) continue;
    if (!passed_over_.contains(key) && !says_nothing(value))
      throw value.error(fmt::format("braid does not know what {} means in a file of {}", key, system_),
                        "take it out if it changes no training, else say it in the workload");
    if (!says_nothing(value)) left.push_back(key);
  }
  if (!left.empty()) notes.push_back(fmt::format("changes no training and was not taken: {}", fmt::join(left, ", ")));
}

std::string yaml_number(double value) {
  return fmt::format("{}", value);
}

std::string yaml_list(const std::vector<std::string>& words) {
  return fmt::format("[{}]", fmt::join(words, ", "));
}

std::vector<std::string> words_of(const Node& node) {
  std::vector<std::string> words;
  if (node.is_sequence()) {
    for (const Node& item : node.items) words.push_back(item.text);
    return words;
  }
  std::string word;
  for (const char c : node.text + ",") {
    if (c != ',' && c != ' ') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, ""));
    }
  }
  return words;
}

std::int64_t set_duration(std::int64_t most_steps, double epochs, std::int64_t steps_of_epoch, ImportedTask& task) {
  const auto all = static_cast<std::int64_t>(std::ceil(epochs * static_cast<double>(steps_of_epoch)));
  if (most_steps <= 0 && epochs == std::floor(epochs)) {
    task.epochs = static_cast<std::int64_t>(epochs);
    return all;
  }
  task.steps = most_steps > 0 ? most_steps : all;
  return *task.steps;
}

nlohmann::ordered_json alpaca_row(const std::string& row, std::int64_t number, const std::filesystem::path& file) {
  nlohmann::ordered_json parsed = nlohmann::ordered_json::parse(row);
  for (const char* column : {"instruction", "output"}) {
    if (!parsed.is_object() || !parsed.contains(column) || !parsed.at(column).is_string())
      throw error(
          "{}: row {} has no text '{}'; give each row an instruction and an output, or name the format that the "
          "rows have",
          file.string(), number, column);
  }
  return parsed;
}

std::vector<std::string> json_rows(const std::filesystem::path& file) {
  using Json = nlohmann::ordered_json;
  const std::string text = read_file(file);
  std::vector<std::string> rows;
  try {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first != std::string::npos && text[first] == '[') {
      for (const Json& row : Json::parse(text)) rows.push_back(row.dump());
      return rows;
    }
    std::size_t begin = 0;
    while (begin < text.size()) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string line = text.substr(begin, end - begin);
      if (line.find_first_not_of(" \t\r") != std::string::npos) rows.push_back(Json::parse(line).dump());
      begin = end + 1;
    }
  } catch (const Json::exception& wrong) {
    throw error("{}: is not JSON ({}); give a list of rows, or a row a line", file.string(), wrong.what());
  }
  return rows;
}

}  // namespace braid::workload
