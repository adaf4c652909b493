#include "sim/cluster/cluster_timeline.h"

#include <algorithm>
#include <bit>
#include <map>
#include <ostream>
#include <queue>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace braid::sim {
namespace {

/// Of the counters; nodes follow.
constexpr std::int64_t kClusterProcess = 0;
constexpr int kBreaksRow = 0;

/// Bytes that are no UTF-8 are replaced.
std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::int64_t process_of(std::int32_t node) {
  return node + 1;
}

class ClusterTimelineWriter {
 public:
  ClusterTimelineWriter(const ClusterRun& run, std::span<const std::string> job_names, std::ostream& out)
      : run_(run), job_names_(job_names), out_(out) {}

  void write() {
    out_ << R"({"displayTimeUnit": "ms", "traceEvents": [)";
    name_process(kClusterProcess, "cluster");
    write_counters();
    std::map<std::int32_t, std::vector<Stretch>> nodes;
    for (const Stretch& stretch : run_.stretches) nodes[stretch.node].push_back(stretch);
    for (const Break& each : run_.breaks) nodes.try_emplace(each.gpus.node);
    for (auto& [node, stretches] : nodes) {
      name_process(process_of(node), fmt::format("node {}", node));
      write_node(stretches);
    }
    write_breaks();
    out_ << "\n]}\n";
  }

 private:
  void line(const std::string& text) {
    out_ << (is_first_ ? "\n" : ",\n") << text;
    is_first_ = false;
  }

  void name_process(std::int64_t process, const std::string& name) {
    line(fmt::format(R"({{"ph": "M", "name": "process_name", "pid": {}, "args": {{"name": "{}"}}}})", process, name));
    line(fmt::format(R"({{"ph": "M", "name": "process_sort_index", "pid": {0}, "args": {{"sort_index": {0}}}}})",
                     process));
  }

  std::string microseconds(double seconds) const {
    return fmt::format("{:.3f}", 1e6 * (seconds - run_.first_submit_seconds));
  }

  void write_counters() {
    const Usage& usage = run_.usage;
    for (std::size_t b = 0; b < usage.bins.size(); ++b) {
      const Usage::Bin& bin = usage.bins[b];
      const std::string at = microseconds(usage.first_seconds + static_cast<double>(b) * usage.bin_seconds);
      for (const auto& [name, value] : {std::pair("GPUs allocated", bin.gpus), std::pair("jobs running", bin.running),
                                        std::pair("jobs waiting", bin.waiting)}) {
        line(fmt::format(R"({{"ph": "C", "name": "{}", "pid": {}, "ts": {}, "args": {{"mean": {:.3f}}}}})", name,
                         kClusterProcess, at, value));
      }
    }
  }

  /// Slices of one row must not overlap: each goes to the lowest row that is free.
  void write_node(std::vector<Stretch>& stretches) {
    std::stable_sort(stretches.begin(), stretches.end(), [](const Stretch& a, const Stretch& b) {
      return std::pair(a.from_seconds, a.job) < std::pair(b.from_seconds, b.job);
    });
    using Busy = std::pair<double, int>;  // until, row
    std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
    std::priority_queue<int, std::vector<int>, std::greater<>> free;
    int rows = kBreaksRow + 1;
    for (const Stretch& stretch : stretches) {
      for (; !busy.empty() && busy.top().first <= stretch.from_seconds; busy.pop()) free.push(busy.top().second);
      if (free.empty()) free.push(rows++);
      const int row = free.top();
      free.pop();
      busy.emplace(stretch.to_seconds, row);
      line(fmt::format(
          R"({{"ph": "X", "name": {}, "cat": "job", "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{"instance": {}, "gpus": {}}}}})",
          json_text(job_names_[static_cast<std::size_t>(stretch.job)]), process_of(stretch.node), row,
          microseconds(stretch.from_seconds), fmt::format("{:.3f}", 1e6 * (stretch.to_seconds - stretch.from_seconds)),
          stretch.instance, stretch.gpus));
    }
  }

  void write_breaks() {
    for (const Break& each : run_.breaks) {
      line(fmt::format(
          R"({{"ph": "i", "s": "p", "name": "{} GPUs {}", "cat": "outage", "pid": {}, "tid": {}, "ts": {}}})",
          std::popcount(each.gpus.gpus), each.repaired ? "come back" : "break", process_of(each.gpus.node), kBreaksRow,
          microseconds(each.seconds)));
    }
  }

  const ClusterRun& run_;
  std::span<const std::string> job_names_;
  std::ostream& out_;
  bool is_first_ = true;
};

}  // namespace

void write_cluster_timeline(const ClusterRun& run, std::span<const std::string> job_names, std::ostream& out) {
  ClusterTimelineWriter(run, job_names, out).write();
}

}  // namespace braid::sim
