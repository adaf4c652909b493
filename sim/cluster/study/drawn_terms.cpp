#include "sim/cluster/study/drawn_terms.h"

#include <array>
#include <cmath>

#include "base/random.h"
#include "base/units.h"

namespace braid::sim {
namespace {

/// Keys draws of what jobs ask for.
constexpr std::uint64_t kTermsDraw = 0x7465726d;

}  // namespace

void draw_terms(std::vector<ClusterJob>& jobs, const DrawnTerms& terms, std::uint64_t seed) {
  if (!terms.any()) return;
  for (std::size_t row = 0; row < jobs.size(); ++row) {
    ClusterJob& job = jobs[row];
    // All three are always drawn, so that one does not change the others.
    RandomStream random(mix_key(std::array{kTermsDraw, seed, static_cast<std::uint64_t>(row)}));
    const double deadline = random.next_uniform(), budget = random.next_uniform(), priority = random.next_uniform();
    const auto in = [](const DrawnTerms::Range& range, double share) {
      return range.least + (range.most - range.least) * share;
    };
    if (terms.deadline_slack && std::isinf(job.deadline_seconds))
      job.deadline_seconds = job.submit_seconds + in(*terms.deadline_slack, deadline) * job.reference_seconds;
    if (terms.budget_slack && std::isinf(job.budget))
      job.budget = in(*terms.budget_slack, budget) * job.service_seconds * job.gpus / kHour;
    if (terms.priorities > 0) job.priority = static_cast<std::int32_t>(priority * terms.priorities);
  }
}

}  // namespace braid::sim
