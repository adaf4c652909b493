#include "report/report.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "report/sections/sections.h"

namespace braid::report {
namespace {

namespace fs = std::filesystem;

constexpr int kDepth = 3;

constexpr const char* kKnown =
    "give what `braid plan`, `compare --json`, `simulate --timeline-out`, `train`, `validate` or `cluster` wrote";

class Collector {
 public:
  explicit Collector(const ReportTools& tools) : tools_(tools) {}

  void add(const fs::path& path) {
    if (!fs::exists(path)) throw error("{}: is not there; {}", path.string(), kKnown);
    const std::size_t before = sections.size();
    if (fs::is_directory(path)) {
      add_folder(path, 0);
      if (sections.size() == before) throw error("{}: holds no results; {}", path.string(), kKnown);
    } else if (!add_file(path)) {
      throw error("{}: is no result of braid's; {}", path.string(), kKnown);
    }
  }

  std::vector<Section> sections;

 private:
  void add_folder(const fs::path& folder, int depth) {
    if (is_training_run(folder)) return sections.push_back(run_section(read_training_run(folder), tools_));
    if (is_cluster_study(folder)) return sections.push_back(cluster_section(folder));
    std::vector<fs::path> entries;
    for (const auto& entry : fs::directory_iterator(folder)) entries.push_back(entry.path());
    std::ranges::sort(entries);
    for (const fs::path& entry : entries) {
      if (fs::is_directory(entry)) {
        if (depth + 1 < kDepth) add_folder(entry, depth + 1);
      } else if (entry.extension() == ".json") {
        add_file(entry);
      }
    }
  }

  /// Whether it is a result.
  bool add_file(const fs::path& file) {
    if (file.extension() == ".csv" || file.filename() == "metrics.jsonl")
      throw error("{}: is part of a result; give its folder", file.string());
    const Node node = parse_json(read_file(file), file.string());
    if (is_plan(node)) {
      sections.push_back(plan_section(plan_summary_from(node, file), tools_));
    } else if (is_trace(node)) {
      Trace trace = trace_from(node);
      sections.push_back(is_of_cluster(trace) ? cluster_trace_section(trace, file)
                                              : trace_section(std::move(trace), file));
    } else if (is_validation(node)) {
      sections.push_back(validation_section(node, file));
    } else if (is_comparison(node)) {
      sections.push_back(comparison_section(node, file));
    } else {
      return false;
    }
    return true;
  }

  const ReportTools& tools_;
};

}  // namespace

std::vector<Section> make_sections(const std::vector<fs::path>& paths, const ReportTools& tools) {
  Collector collector(tools);
  for (const fs::path& path : paths) collector.add(path);
  return std::move(collector.sections);
}

}  // namespace braid::report
