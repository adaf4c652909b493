#include "traces/transform.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/random.h"
#include "traces/trace_statistics.h"

namespace braid::traces {
namespace {

constexpr std::size_t kNamesListed = 20;

std::int32_t cluster_named(const Trace& trace, const std::string& name) {
  const auto known = std::find(trace.virtual_clusters.begin(), trace.virtual_clusters.end(), name);
  if (known != trace.virtual_clusters.end()) return static_cast<std::int32_t>(known - trace.virtual_clusters.begin());
  if (trace.virtual_clusters.empty())
    throw error("{}: names no virtual clusters, so there is no '{}'", trace.source, name);
  const std::size_t listed = std::min(kNamesListed, trace.virtual_clusters.size());
  throw error("{}: has no virtual cluster '{}'; give one of {}{}", trace.source, name,
              fmt::join(trace.virtual_clusters.begin(),
                        trace.virtual_clusters.begin() + static_cast<std::ptrdiff_t>(listed), ", "),
              listed < trace.virtual_clusters.size() ? ", ..." : "");
}

void check_factor(double factor, const char* what) {
  if (!(factor > 0) || !std::isfinite(factor)) throw error("{} {} is not usable; give a number above 0", what, factor);
}

}  // namespace

Trace slice(const Trace& trace, const Slice& wanted) {
  const std::int32_t cluster = wanted.virtual_cluster.empty() ? -1 : cluster_named(trace, wanted.virtual_cluster);
  Trace result = trace;
  std::erase_if(result.jobs, [&](const Job& job) {
    return job.submit_seconds < wanted.from_seconds || job.submit_seconds >= wanted.to_seconds ||
           (cluster >= 0 && job.virtual_cluster != cluster) || (wanted.most_gpus && job.gpus > *wanted.most_gpus);
  });
  if (result.jobs.empty())
    throw error("{}: none of its {} jobs is in the slice; its submissions lie between {:.0f} and {:.0f} s",
                trace.source, trace.jobs.size(), trace.jobs.front().submit_seconds, trace.jobs.back().submit_seconds);
  return result;
}

Trace scale(const Trace& trace, double times, double durations) {
  check_factor(times, "times");
  check_factor(durations, "durations");
  Trace result = trace;
  const double first = trace.jobs.front().submit_seconds;
  for (Job& job : result.jobs) {
    const double slack = job.deadline_seconds - job.submit_seconds;
    job.submit_seconds = first + (job.submit_seconds - first) * times;
    job.deadline_seconds = job.submit_seconds + slack * durations;
    job.duration_seconds *= durations;
  }
  return result;
}

Trace scale_to_load(const Trace& trace, double load, std::int64_t gpus, std::int32_t gpus_of_each) {
  check_factor(load, "load");
  const double now = offered_load(trace, gpus, gpus_of_each);
  if (!std::isfinite(now) || now <= 0)
    throw error("{}: its jobs come at one instant or take no time, so that no load can be given to it", trace.source);
  return scale(trace, now / load, 1);
}

Trace resample(const Trace& trace, std::int64_t count, double jobs_per_minute, std::uint64_t seed) {
  if (count < 1) throw error("{} jobs are not usable; give a number >= 1", count);
  if (jobs_per_minute == 0) jobs_per_minute = statistics_of(trace).jobs_per_minute;
  check_factor(jobs_per_minute, "jobs a minute");
  constexpr std::uint64_t kResample = 0x7265736d;
  RandomStream random(mix_key(std::array{kResample, seed}));
  Trace result = trace;
  result.jobs.clear();
  double now = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    Job job = trace.jobs[random.next_below(trace.jobs.size())];
    now -= std::log(1 - random.next_uniform()) / jobs_per_minute * 60;
    job.deadline_seconds += now - job.submit_seconds;
    job.submit_seconds = now;
    job.id = std::to_string(i);
    result.jobs.push_back(std::move(job));
  }
  result.zero.clear();
  result.irregularities = {};
  return result;
}

}  // namespace braid::traces
