#include "report/sources/trace.h"

#include <algorithm>

namespace braid::report {
namespace {

constexpr double kMicrosecond = 1e-6;

}  // namespace

double Trace::end() const {
  double end = 0;
  for (const Event& event : events) end = std::max(end, event.end);
  return end;
}

void Trace::shift_to_zero() {
  if (events.empty()) return;
  const double begin = events.front().begin;
  for (Event& event : events) event.begin -= begin, event.end -= begin;
  for (auto& [rank, samples] : memory)
    for (auto& [time, bytes] : samples) time -= begin;
}

Trace Trace::first_events_of(const Trace& other) const {
  std::map<std::pair<int, std::string>, std::size_t> counts;
  for (const Event& event : other.events) ++counts[{event.rank, event.stream}];
  Trace first;
  first.ranks = ranks;
  for (const Event& event : events) {
    const auto left = counts.find({event.rank, event.stream});
    if (left == counts.end() || left->second == 0) continue;
    --left->second;
    first.events.push_back(event);
  }
  const double end = first.end();
  for (const auto& [rank, samples] : memory)
    for (const auto& sample : samples)
      if (sample.first <= end) first.memory[rank].push_back(sample);
  return first;
}

bool is_of_cluster(const Trace& trace) {
  return !trace.counters.empty() || (!trace.events.empty() && trace.events.front().kind == "job");
}

bool is_trace(const Node& node) {
  return node.is_map() && node.find("traceEvents");
}

Trace trace_from(const Node& node) {
  Trace trace;
  std::map<std::pair<int, int>, std::string> streams;
  const std::vector<Node>& entries = node.at("traceEvents").sequence("traceEvents");
  const auto rank_of = [](const Node& entry) { return static_cast<int>(entry.integer_at("pid", 0, 1 << 20)); };
  const auto lane_of = [&](const Node& entry) {
    return std::pair(rank_of(entry), static_cast<int>(entry.integer_at("tid", 0, 1 << 20)));
  };
  for (const Node& entry : entries) {
    const std::string form = entry.string_at("ph");
    if (form == "M" && entry.string_at("name") == "thread_name") {
      streams[lane_of(entry)] = entry.at("args").string_at("name");
    } else if (form == "M" && entry.string_at("name") == "process_name") {
      trace.ranks[rank_of(entry)] = entry.at("args").string_at("name");
    }
  }
  for (const Node& entry : entries) {
    const std::string form = entry.string_at("ph");
    if (form == "C" && entry.string_at("name") == "memory") {
      trace.memory[rank_of(entry)].emplace_back(entry.number_at("ts") * kMicrosecond,
                                                entry.at("args").number_at("bytes"));
    } else if (form == "C" && entry.at("args").find("mean")) {
      trace.counters[entry.string_at("name")].emplace_back(entry.number_at("ts") * kMicrosecond,
                                                           entry.at("args").number_at("mean"));
    } else if (form == "X") {
      const double begin = entry.number_at("ts") * kMicrosecond;
      const Node* arguments = entry.find("args");
      trace.events.push_back({rank_of(entry), lane_of(entry).second, streams[lane_of(entry)],
                              entry.string_or("cat", ""), entry.string_at("name"),
                              arguments ? arguments->string_or("tasks", "") : "", begin,
                              begin + entry.number_at("dur") * kMicrosecond});
    }
  }
  std::ranges::stable_sort(trace.events, {}, &Trace::Event::begin);
  for (auto& [rank, samples] : trace.memory) std::ranges::stable_sort(samples);
  return trace;
}

}  // namespace braid::report
