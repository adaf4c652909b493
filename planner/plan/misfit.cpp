#include "planner/plan/misfit.h"

#include <algorithm>

#include "base/error.h"

namespace braid::planner {
namespace {

const workload::Task& heaviest_task(const workload::Workload& workload, const FixedPlan& fixed) {
  const std::int64_t parts = fixed.batching.microbatches * static_cast<std::int64_t>(fixed.deployment.size());
  const auto tokens = [&](const workload::Task& task) {
    return (task.global_batch_size + parts - 1) / parts * task.sample_tokens();
  };
  return *std::max_element(workload.tasks.begin(), workload.tasks.end(),
                           [&](const auto& a, const auto& b) { return tokens(a) < tokens(b); });
}

}  // namespace

std::string describe(const Misfit& misfit, const workload::Workload& workload, std::string_view policy, Bytes capacity,
                     std::string_view remedy) {
  BRAID_CHECK(misfit.missing > 0, "{} laid out nothing that does not fit", policy);
  return fmt::format("task '{}' does not fit memory under {}; {} (rank {} misses {} of {})",
                     heaviest_task(workload, misfit.fixed).name, policy, remedy, misfit.rank,
                     describe_bytes(misfit.missing), describe_bytes(capacity));
}

}  // namespace braid::planner
