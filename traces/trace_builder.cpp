#include "traces/trace_builder.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/units.h"
#include "traces/dates.h"

namespace braid::traces {
namespace {

std::optional<double> parse_number(std::string_view text) {
  double number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

}  // namespace

bool is_missing(std::string_view text) {
  static constexpr std::array<std::string_view, 4> kWords = {"none", "nan", "nat", "null"};
  const auto same = [&](std::string_view word) {
    return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                      [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
  };
  return text.empty() || std::any_of(kWords.begin(), kWords.end(), same);
}

TraceBuilder::TraceBuilder(std::string source, std::string format) {
  trace_.source = std::move(source);
  trace_.format = std::move(format);
}

double TraceBuilder::moment(std::string_view text, std::string_view what) {
  const auto seconds = parse_number(text);
  const auto date = seconds ? std::nullopt : parse_date(text);
  if (!seconds && !date) throw error("{} '{}' is no time; give seconds or a date like 2017-10-09 07:01:55", what, text);
  if (seconds && row_clock_ == Clock::dates)
    throw error("{} '{}' is in seconds, where times before it are dates; use one of them", what, text);
  if (date && row_clock_ == Clock::seconds)
    throw error("{} '{}' is a date, where times before it are in seconds; use one of them", what, text);
  row_clock_ = seconds ? Clock::seconds : Clock::dates;
  return seconds ? *seconds : *date;
}

void TraceBuilder::add(Job job, std::string_view virtual_cluster) {
  Irregularities& irregular = trace_.irregularities;
  ++irregular.rows;
  if (!trace_.jobs.empty() && job.submit_seconds < trace_.jobs.back().submit_seconds) ++irregular.out_of_order;
  if (job.id.empty()) job.id = std::to_string(irregular.rows - 1);
  if (!virtual_cluster.empty()) {
    const auto [known, is_new] = virtual_clusters_.emplace(virtual_cluster, trace_.virtual_clusters.size());
    if (is_new) trace_.virtual_clusters.emplace_back(virtual_cluster);
    job.virtual_cluster = known->second;
  }
  trace_.jobs.push_back(std::move(job));
  clock_ = row_clock_;
}

void TraceBuilder::skip(Skipped why) {
  ++trace_.irregularities.rows;
  ++trace_.irregularities.skipped[why];
  row_clock_ = clock_;
}

void TraceBuilder::skip_bad(std::string_view message) {
  if (trace_.irregularities.first_bad.empty()) trace_.irregularities.first_bad = message;
  skip(Skipped::bad);
}

Trace TraceBuilder::finish() {
  std::vector<Job>& jobs = trace_.jobs;
  if (jobs.empty())
    throw error("{}: no job with a GPU, a start and an end is in it ({} rows); give a trace with jobs", trace_.source,
                trace_.irregularities.rows);
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const Job& a, const Job& b) { return a.submit_seconds < b.submit_seconds; });
  if (clock_ == Clock::dates) {
    const double zero = std::floor(jobs.front().submit_seconds / kDay) * kDay;
    trace_.zero = day_of(zero);
    for (Job& job : jobs) {
      job.submit_seconds -= zero;
      job.deadline_seconds -= zero;
    }
  }
  return std::move(trace_);
}

}  // namespace braid::traces
