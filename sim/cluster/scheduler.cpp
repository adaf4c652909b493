#include "sim/cluster/scheduler.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/error.h"
#include "sim/cluster/schedulers.h"

namespace braid::sim {

const std::vector<SchedulerKind>& scheduler_kinds() {
  static const std::vector<SchedulerKind> kKinds = {
      {"fcfs", "in the order of submission, nobody passes anybody", &make_fcfs},
      {"fcfs-any", "in the order of submission, whoever fits", &make_fcfs_any},
      {"easy", "fcfs; others go ahead where the first in the queue starts no later for it", &make_easy},
      {"conservative", "fcfs; others go ahead where nobody in the queue starts later for it", &make_conservative},
      {"sjf", "shortest service first, whoever fits", &make_sjf},
      {"srtf", "shortest remaining service first, preemptive", &make_srtf},
      {"srsf", "least remaining service x GPUs first, preemptive (Tiresias)", &make_srsf},
      {"priority", "highest priority first, preemptive, fcfs within one", &make_priority},
      {"edf", "earliest deadline first, preemptive", &make_edf},
      {"las", "jobs of less than a GPU-hour so far first, the first started first, preemptive (Tiresias)", &make_las},
      {"gittins", "whose GPU time so far makes an end the likeliest first, preemptive (Tiresias)", &make_gittins},
      {"max-min", "least GPU time so far over its equal share first, in rounds of 6 min, preemptive (Gavel)",
       &make_max_min},
      {"ftf", "worst predicted finish-time fairness first, in rounds of 6 min, preemptive (Themis)", &make_ftf},
      {"drf", "the virtual cluster that holds the fewest GPUs for its quota first, fcfs within one", &make_drf},
      {"deadline", "edf of those whose deadlines can all be met, the others behind them, preemptive (ElasticFlow)",
       &make_deadline},
      {"budget", "refuses jobs that cost more than their budget; tightest budget first, whoever fits", &make_budget},
      {"goodput", "GPUs dealt out anew every 6 min so that jobs' paces add up to the most, elastic (Pollux)",
       &make_goodput, true},
      {"mux", "highest priority first, whoever fits, where throughput rises the most", &make_mux},
  };
  return kKinds;
}

bool is_elastic(const std::string& scheduler) {
  const auto& kinds = scheduler_kinds();
  return std::any_of(kinds.begin(), kinds.end(),
                     [&](const SchedulerKind& kind) { return kind.name == scheduler && kind.is_elastic; });
}

std::unique_ptr<Scheduler> make_scheduler(const std::string& name, const std::vector<ClusterJob>& jobs) {
  std::vector<std::string_view> names;
  for (const SchedulerKind& kind : scheduler_kinds()) {
    if (kind.name == name) return kind.make(jobs);
    names.push_back(kind.name);
  }
  throw error("scheduler '{}' is not known; give one of {}", name, fmt::join(names, ", "));
}

}  // namespace braid::sim
