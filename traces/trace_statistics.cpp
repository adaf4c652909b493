#include "traces/trace_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/units.h"

namespace braid::traces {
namespace {

constexpr int kHoursOfDay = 24;

double gpu_seconds_of(const Job& job) {
  return job.gpus * job.duration_seconds;
}

double span_of(const Trace& trace) {
  return trace.jobs.back().submit_seconds - trace.jobs.front().submit_seconds;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

Distribution distribution_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  };
  const std::size_t middle = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {mean_of(values), deviation_of(values), median, at(0.9), at(0.99), values.front(), values.back()};
}

double interarrival_variation(const Trace& trace) {
  std::vector<double> between;
  for (std::size_t i = 1; i < trace.jobs.size(); ++i)
    between.push_back(trace.jobs[i].submit_seconds - trace.jobs[i - 1].submit_seconds);
  if (between.empty() || mean_of(between) <= 0) return 0;
  return deviation_of(between) / mean_of(between);
}

/// How long each hour of the day lies between two times.
std::array<double, kHoursOfDay> seconds_of_hours(double first, double last) {
  std::array<double, kHoursOfDay> seconds{};
  for (double hour = std::floor(first / kHour); hour * kHour < last; ++hour) {
    const auto of_day = static_cast<std::size_t>(std::fmod(std::fmod(hour, kHoursOfDay) + kHoursOfDay, kHoursOfDay));
    seconds[of_day] += std::min(last, (hour + 1) * kHour) - std::max(first, hour * kHour);
  }
  return seconds;
}

std::array<double, kHoursOfDay> rates_of_hours(const Trace& trace) {
  std::array<double, kHoursOfDay> jobs{};
  for (const Job& job : trace.jobs) {
    const double of_day = std::fmod(std::fmod(job.submit_seconds, kDay) + kDay, kDay);
    jobs[std::min<std::size_t>(static_cast<std::size_t>(of_day / kHour), kHoursOfDay - 1)] += 1;
  }
  const auto seconds = seconds_of_hours(trace.jobs.front().submit_seconds, trace.jobs.back().submit_seconds);
  for (std::size_t hour = 0; hour < jobs.size(); ++hour)
    jobs[hour] = seconds[hour] > 0 ? jobs[hour] / (seconds[hour] / kMinute) : 0;
  return jobs;
}

double work_of_longest(const Trace& trace, double all) {
  std::vector<const Job*> jobs;
  for (const Job& job : trace.jobs) jobs.push_back(&job);
  const auto count = static_cast<std::ptrdiff_t>((jobs.size() + 99) / 100);
  std::nth_element(jobs.begin(), jobs.begin() + count - 1, jobs.end(),
                   [](const Job* a, const Job* b) { return a->duration_seconds > b->duration_seconds; });
  double work = 0;
  for (auto job = jobs.begin(); job != jobs.begin() + count; ++job) work += gpu_seconds_of(**job);
  return all > 0 ? work / all : 0;
}

}  // namespace

TraceStatistics statistics_of(const Trace& trace) {
  BRAID_CHECK(!trace.jobs.empty(), "statistics of no jobs");
  TraceStatistics result;
  result.jobs = static_cast<std::int64_t>(trace.jobs.size());
  result.span_seconds = span_of(trace);
  if (result.span_seconds > 0)
    result.jobs_per_minute = static_cast<double>(result.jobs) / (result.span_seconds / kMinute);
  result.interarrival_variation = interarrival_variation(trace);
  result.jobs_per_minute_of_hour = rates_of_hours(trace);
  for (const std::string& name : trace.virtual_clusters) result.virtual_clusters.push_back({name, 0, 0});
  std::vector<double> durations;
  for (const Job& job : trace.jobs) {
    durations.push_back(job.duration_seconds);
    ++result.jobs_by_gpus[job.gpus];
    result.gpu_seconds += gpu_seconds_of(job);
    if (job.virtual_cluster < 0) continue;
    TraceStatistics::VirtualCluster& cluster = result.virtual_clusters[static_cast<std::size_t>(job.virtual_cluster)];
    ++cluster.jobs;
    cluster.gpu_seconds += gpu_seconds_of(job);
  }
  result.duration = distribution_of(std::move(durations));
  result.work_of_longest = work_of_longest(trace, result.gpu_seconds);
  std::stable_sort(result.virtual_clusters.begin(), result.virtual_clusters.end(),
                   [](const auto& a, const auto& b) { return a.gpu_seconds > b.gpu_seconds; });
  return result;
}

double offered_load(const Trace& trace, std::int64_t gpus, std::int32_t gpus_of_each) {
  BRAID_CHECK(gpus > 0 && !trace.jobs.empty(), "the load of {} jobs on {} GPUs", trace.jobs.size(), gpus);
  double work = 0;
  for (const Job& job : trace.jobs) work += (gpus_of_each > 0 ? gpus_of_each : job.gpus) * job.duration_seconds;
  const double span = span_of(trace);
  if (span <= 0) return work > 0 ? std::numeric_limits<double>::infinity() : 0;
  return work / span / static_cast<double>(gpus);
}

}  // namespace braid::traces
