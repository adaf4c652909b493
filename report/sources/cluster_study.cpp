#include "report/sources/cluster_study.h"

#include <algorithm>
#include <set>

#include "base/csv.h"
#include "base/file.h"
#include "base/node.h"

namespace braid::report {
namespace {

namespace fs = std::filesystem;
using Group = ClusterStudy::Group;

/// A CSV file whose runs are told by the columns from `scheduler` on.
class RunTable {
 public:
  explicit RunTable(const fs::path& file) : rows_(file) {
    if (!rows_.next())
      throw error("{}: holds no columns; give a study as `braid cluster --out` writes it", file.string());
    for (const std::string_view column : rows_.fields()) columns_.emplace_back(column);
    first_ = static_cast<std::size_t>(std::ranges::find(columns_, "scheduler") - columns_.begin());
    if (first_ == columns_.size())
      throw error("{}: has no column scheduler; give a study as `braid cluster --out` writes it", file.string());
  }

  bool next() { return rows_.next(); }
  double number(const std::string& column) const { return rows_.number(place(column), column); }
  bool is_empty(const std::string& column) const { return rows_.fields()[place(column)].empty(); }
  std::string seed() const { return std::string(rows_.fields()[place("seed")]); }
  /// All but the seed.
  ClusterStudy::Identity identity() const {
    ClusterStudy::Identity identity;
    for (std::size_t i = first_; i < columns_.size(); ++i)
      if (columns_[i] != "seed") identity.emplace_back(columns_[i], rows_.fields()[i]);
    std::ranges::sort(identity);
    return identity;
  }

 private:
  std::size_t place(const std::string& column) const {
    const auto found = std::ranges::find(columns_, column);
    if (found == columns_.end()) throw error("{}: has no column {}", rows_.file(), column);
    return static_cast<std::size_t>(found - columns_.begin());
  }

  CsvReader rows_;
  std::vector<std::string> columns_;
  std::size_t first_ = 0;
};

ClusterStudy::Identity sorted(ClusterStudy::Identity identity) {
  std::ranges::sort(identity);
  return identity;
}

/// Calls `take` for each row of the first seed that a group has, with the group.
template <typename Take>
void of_first_seeds(ClusterStudy& study, const fs::path& file, const Take& take) {
  std::map<ClusterStudy::Identity, Group*> known;
  for (Group& group : study.groups) known[sorted(group.identity)] = &group;
  std::map<Group*, std::string> seeds;
  RunTable rows(file);
  while (rows.next()) {
    const auto group = known.find(rows.identity());
    if (group == known.end()) continue;
    if (seeds.try_emplace(group->second, rows.seed()).first->second == rows.seed()) take(rows, *group->second);
  }
}

void read_summary(const Node& summary, ClusterStudy& study) {
  study.trace = summary.at("trace").string_or("source", "generated");
  study.job_count = summary.at("trace").integer_or("jobs", 0);
  const Node& settings = summary.at("settings");
  study.gpu = fs::path(settings.string_or("gpu", "")).filename();
  study.gpus = settings.integer_or("gpus", 0);
  study.jobs = settings.string_or("jobs", "");
  std::map<std::string, std::set<std::string>> values;
  std::vector<std::string> names;
  for (const Node& node : summary.at("groups").sequence("groups")) {
    Group& group = study.groups.emplace_back();
    for (const auto& [key, value] : node.fields) {
      if (key == "seeds") {
        group.seeds = value.as_integer(key);
      } else if (key == "metrics") {
        for (const auto& [metric, told] : value.fields) {
          if (told.is_null() || told.at("mean").is_null()) continue;
          const Node* half = told.find("ci95");
          group.metrics[metric] = {told.number_at("mean"),
                                   half && !half->is_null() ? std::optional(half->as_number("ci95")) : std::nullopt};
        }
      } else if (value.is_scalar()) {
        group.identity.emplace_back(key, value.text);
        values[key].insert(value.text);
        if (std::ranges::find(names, key) == names.end()) names.push_back(key);
      }
    }
  }
  for (const std::string& name : names)
    if (values[name].size() > 1) study.varied.push_back(name);
  if (study.varied.empty()) study.varied = {"scheduler"};
}

}  // namespace

std::optional<double> Group::mean(const std::string& metric) const {
  const auto found = metrics.find(metric);
  return found == metrics.end() ? std::nullopt : std::optional(found->second.mean);
}

std::string ClusterStudy::name(const Group& group) const {
  std::string text;
  for (const std::string& key : varied) {
    for (const auto& [name, value] : group.identity)
      if (name == key)
        text += (text.empty() ? "" : ", ") +
                (name == "scheduler" || name == "policy" || name == "placement" ? value : name + " " + value);
  }
  return text;
}

bool is_cluster_study(const fs::path& folder) {
  return fs::exists(folder / "summary.json") && fs::exists(folder / "jobs.csv");
}

ClusterStudy read_cluster_study(const fs::path& folder) {
  ClusterStudy study;
  study.folder = folder;
  const fs::path summary = folder / "summary.json";
  read_summary(parse_json(read_file(summary), summary.string()), study);
  of_first_seeds(study, folder / "jobs.csv", [](const RunTable& row, Group& group) {
    if (!row.is_empty("finish_s")) group.completion_seconds.push_back(row.number("finish_s") - row.number("submit_s"));
    if (!row.is_empty("queue_s")) group.queueing_seconds.push_back(row.number("queue_s"));
  });
  if (const fs::path file = folder / "utilization.csv"; fs::exists(file)) {
    of_first_seeds(study, file, [](const RunTable& row, Group& group) {
      group.hours.push_back({row.number("from_s"), row.number("gpus"), row.number("running"), row.number("waiting")});
    });
  }
  return study;
}

}  // namespace braid::report
