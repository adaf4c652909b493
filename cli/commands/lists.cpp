#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/command.h"
#include "cli/support/options.h"
#include "costmodel/gpu/device.h"
#include "costmodel/shapes/backbone.h"
#include "planner/policies/registry.h"
#include "sim/cluster/scheduler.h"
#include "traces/read_trace.h"

// What the program knows by name.
namespace braid::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Rows of a list as a table, or as JSON.
class Listing {
 public:
  explicit Listing(std::vector<std::string> columns) : columns_(std::move(columns)) {}

  void add(std::vector<Json> row) { rows_.push_back(std::move(row)); }
  void print(bool json) const { json ? print_json() : print_table(); }

 private:
  void print_json() const {
    Json all = Json::array();
    for (const std::vector<Json>& row : rows_) {
      Json& one = all.emplace_back(Json::object());
      for (std::size_t i = 0; i < columns_.size(); ++i) one[columns_[i]] = row[i];
    }
    fmt::print("{}\n", all.dump(1));
  }
  /// Numbers are set flush right, the last column of words as it is.
  void print_table() const {
    const auto cell = [](const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); };
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      widths.push_back(columns_[i].size());
      for (const std::vector<Json>& row : rows_) widths[i] = std::max(widths[i], cell(row[i]).size());
    }
    std::string heads;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const bool number = !rows_.empty() && rows_.front()[i].is_number();
      heads +=
          number ? fmt::format("{:>{}}  ", columns_[i], widths[i]) : fmt::format("{:{}}  ", columns_[i], widths[i]);
    }
    fmt::print("{}\n", heads.substr(0, heads.find_last_not_of(' ') + 1));
    for (const std::vector<Json>& row : rows_) {
      std::string line;
      for (std::size_t i = 0; i < row.size(); ++i)
        line += row[i].is_number() ? fmt::format("{:>{}}  ", cell(row[i]), widths[i])
                                   : fmt::format("{:{}}  ", cell(row[i]), widths[i]);
      fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
    }
  }

  std::vector<std::string> columns_;
  std::vector<std::vector<Json>> rows_;
};

std::vector<std::string> values_of(const planner::PolicyOption& option) {
  std::vector<std::string> values(option.values.begin(), option.values.end());
  if (option.multiple_of > 0)
    values.push_back(option.multiple_of == 1 ? "NUMBER" : fmt::format("a multiple of {}", option.multiple_of));
  return values;
}

void tell_policy(const planner::Policy& policy, bool json) {
  if (json) {
    Json options = Json::object();
    for (const planner::PolicyOption& option : policy.options()) options[std::string(option.name)] = values_of(option);
    fmt::print("{}\n", Json{{"name", policy.name()}, {"summary", policy.summary()}, {"options", options}}.dump(1));
    return;
  }
  fmt::print("{}: {}\n\n", policy.name(), policy.summary());
  for (const planner::PolicyOption& option : policy.options())
    fmt::print("  {:18} {}\n", option.name, fmt::join(values_of(option), ", "));
  fmt::print("\nOf each option the first value is the default; others are asked for as --policy {}:{}={}.\n",
             policy.name(), policy.options().front().name, values_of(policy.options().front()).back());
}

/// Of a list that has nothing but rows. False where --help was asked for.
bool parse_list(const std::vector<std::string>& words, const std::string& usage, CommonFlags& flags) {
  CommandLine line(usage, flags);
  return line.parse(words);
}

}  // namespace

int run_policies(const std::vector<std::string>& words) {
  CommonFlags flags;
  CommandLine line("braid policies [NAME], what --policy may name, and the options of one", flags);
  std::string name;
  line.add_optional_positional("NAME", name);
  if (!line.parse(words)) return kSuccess;
  if (!name.empty()) {
    tell_policy(*planner::parse_policy(name).policy, flags.json);
    return kSuccess;
  }
  Listing list({"policy", "what goes together"});
  for (const auto& policy : planner::policies()) list.add({policy->name(), policy->summary()});
  list.print(flags.json);
  if (!flags.json) fmt::print("\n`braid policies NAME` lists the options of one.\n");
  return kSuccess;
}

int run_schedulers(const std::vector<std::string>& words) {
  CommonFlags flags;
  if (!parse_list(words, "braid schedulers, what `braid cluster --scheduler` may name", flags)) return kSuccess;
  Listing list({"scheduler", "who goes first"});
  for (const sim::SchedulerKind& kind : sim::scheduler_kinds()) list.add({kind.name, kind.what});
  list.print(flags.json);
  return kSuccess;
}

int run_gpus(const std::vector<std::string>& words) {
  CommonFlags flags;
  if (!parse_list(words, "braid gpus, what `gpu:` of a cluster may name, by their datasheets", flags)) return kSuccess;
  Listing list({"gpu", "bf16 TFLOP/s", "memory GB", "memory GB/s", "NVLink GB/s", "watts"});
  for (const std::string& name : costmodel::device_names()) {
    const costmodel::Device& device = costmodel::device_of(name);
    const auto rounded = [](double value) { return static_cast<std::int64_t>(value + 0.5); };
    list.add({name, rounded(device.bf16_flops / 1e12), rounded(static_cast<double>(device.memory_bytes) / 1e9),
              rounded(device.memory_bandwidth / 1e9), rounded(device.nvlink_bandwidth / 1e9),
              rounded(device.power_watts)});
  }
  list.print(flags.json);
  return kSuccess;
}

int run_backbones(const std::vector<std::string>& words) {
  CommonFlags flags;
  if (!parse_list(words, "braid backbones, shapes that a workload may name to plan without weights", flags))
    return kSuccess;
  Listing list({"backbone", "parameters", "layers", "hidden", "heads", "kv heads", "positions"});
  for (const std::string& name : costmodel::builtin_backbone_names()) {
    const costmodel::BackboneShape shape = costmodel::builtin_backbone(name);
    list.add({name, shape.parameters(), shape.layers, shape.hidden, shape.heads, shape.kv_heads, shape.max_position});
  }
  list.print(flags.json);
  return kSuccess;
}

int run_trace_formats(const std::vector<std::string>& words) {
  CommonFlags flags;
  if (!parse_list(words, "braid trace formats, what traces of jobs are read", flags)) return kSuccess;
  Listing list({"format", "what it is"});
  for (const traces::TraceFormat& format : traces::trace_formats()) list.add({format.name, format.what});
  list.print(flags.json);
  return kSuccess;
}

}  // namespace braid::cli
