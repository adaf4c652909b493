#include "sim/cluster/study/trace_jobs.h"

#include <array>

#include "base/random.h"

namespace braid::sim {
namespace {

/// Keys draws of kinds apart from all others.
constexpr std::uint64_t kKindDraw = 0x6b696e64;

ClusterJob job_of(const traces::Job& recorded) {
  ClusterJob job;
  job.submit_seconds = recorded.submit_seconds;
  job.service_seconds = job.reference_seconds = recorded.duration_seconds;
  job.gpus = recorded.gpus;
  job.virtual_cluster = recorded.virtual_cluster;
  job.priority = recorded.priority;
  job.deadline_seconds = recorded.deadline_seconds;
  job.budget = recorded.budget;
  return job;
}

}  // namespace

std::vector<ClusterJob> recorded_jobs(const traces::Trace& trace) {
  std::vector<ClusterJob> jobs;
  for (const traces::Job& recorded : trace.jobs) jobs.push_back(job_of(recorded));
  return jobs;
}

std::vector<KindIndex> draw_kinds(const traces::Trace& trace, std::int32_t kinds, std::uint64_t seed) {
  std::vector<KindIndex> drawn;
  for (std::size_t row = 0; row < trace.jobs.size(); ++row) {
    RandomStream random(mix_key(std::array{kKindDraw, seed, static_cast<std::uint64_t>(row)}));
    drawn.push_back(static_cast<KindIndex>(random.next_below(static_cast<std::uint64_t>(kinds))));
  }
  return drawn;
}

std::vector<double> owed_steps(const traces::Trace& trace, const std::vector<KindIndex>& kinds,
                               const StepRates& reference, std::int32_t job_gpus) {
  std::vector<double> steps;
  for (std::size_t row = 0; row < trace.jobs.size(); ++row) {
    const traces::Job& job = trace.jobs[row];
    steps.push_back(job.duration_seconds * reference(kinds[row], job_gpus > 0 ? job_gpus : job.gpus));
  }
  return steps;
}

std::vector<ClusterJob> task_jobs(const traces::Trace& trace, const std::vector<KindIndex>& kinds,
                                  const std::vector<double>& steps, std::int32_t gpus,
                                  const std::vector<std::optional<KindCost>>& alone) {
  std::vector<ClusterJob> jobs;
  for (std::size_t row = 0; row < trace.jobs.size(); ++row) {
    ClusterJob& job = jobs.emplace_back(job_of(trace.jobs[row]));
    job.kind = kinds[row];
    job.gpus = gpus;
    const std::optional<KindCost>& cost = alone[static_cast<std::size_t>(job.kind)];
    job.service_seconds = cost ? steps[row] * cost->step_seconds : 0;
  }
  return jobs;
}

}  // namespace braid::sim
