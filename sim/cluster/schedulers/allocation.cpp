#include "sim/cluster/schedulers/allocation.h"

#include <queue>
#include <tuple>

namespace braid::sim {
namespace {

/// From one option to the next of its job.
struct Gain {
  double pace_per_gpu = 0;
  std::size_t job = 0, option = 0;  // the next one
  /// The queue has the largest on top.
  bool operator<(const Gain& other) const {
    return std::tuple(pace_per_gpu, other.job) < std::tuple(other.pace_per_gpu, job);
  }
};

double gain(const GpuOption& from, const GpuOption& to) {
  return (to.pace - from.pace) / (to.gpus - from.gpus);
}

/// Those on the upper hull, from no GPUs on: none adds more pace for a GPU than the one before.
std::vector<GpuOption> hull_of(const std::vector<GpuOption>& options) {
  std::vector<GpuOption> hull = {{0, 0}};
  for (const GpuOption& option : options) {
    if (option.pace <= hull.back().pace) continue;
    while (hull.size() > 1 && gain(hull[hull.size() - 2], hull.back()) < gain(hull.back(), option)) hull.pop_back();
    hull.push_back(option);
  }
  return hull;
}

}  // namespace

std::vector<std::int32_t> allocate(std::int64_t gpus, std::span<const std::vector<GpuOption>> jobs) {
  std::vector<std::vector<GpuOption>> hulls;
  std::priority_queue<Gain> gains;
  const auto offer = [&](std::size_t job, std::size_t option) {
    const std::vector<GpuOption>& hull = hulls[job];
    if (option < hull.size()) gains.push({gain(hull[option - 1], hull[option]), job, option});
  };
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    hulls.push_back(hull_of(jobs[job]));
    offer(job, 1);
  }
  std::vector<std::int32_t> given(jobs.size(), 0);
  for (; !gains.empty() && gpus > 0;) {
    const Gain next = gains.top();
    gains.pop();
    const GpuOption& option = hulls[next.job][next.option];
    const std::int32_t more = option.gpus - given[next.job];
    // Where it is too much, others may still have less.
    if (more > gpus) continue;
    gpus -= more;
    given[next.job] = option.gpus;
    offer(next.job, next.option + 1);
  }
  return given;
}

}  // namespace braid::sim
