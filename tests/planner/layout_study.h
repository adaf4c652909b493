#pragma once

#include <algorithm>
#include <cstdint>

#include "base/random.h"
#include "planner/muxtune/muxtune.h"
#include "planner/muxtune/structured_plan.h"
#include "planner/studies.h"

// What MuxTune's search loses by laying out with real microbatches only the layouts that are best by Eq. 3.
namespace braid::planner::testing {

struct LayoutSetting {
  std::int64_t tasks = 8;
  std::int64_t tp = 2;
  std::int64_t pp = 2;
  std::uint64_t instances = 20;
};

/// Random tasks on one pipeline of A40s, in 1 to 8 microbatches a global batch.
class LayoutInstance {
 public:
  LayoutInstance(const LayoutSetting& setting, std::uint64_t seed)
      : random_(seed),
        study_(make_study(any_tasks(setting.tasks), 1, setting.tp * setting.pp)),
        microbatches_(std::int64_t{1} << random_.next_below(4)),
        latency_(study_.cost, study_.workload.backbone),
        deployment_(deployments(study_.workload, study_.cluster,
                                {.tp = setting.tp, .pp = setting.pp, .microbatches = {}},
                                {.tensor = true, .pipeline = true})
                        .front()) {}

  /// Of a step, as replayed.
  double seconds(const MuxTuneOptions& options) { return replayed(arrange_muxtune(input(), options).value().fixed); }

  /// What the template's makespan lacks of that, as a share: Steps, messages that are not the mean one.
  double template_lacks() {
    FixedPlan fixed = arrange_muxtune(input(), {}).value().fixed;
    LaidOutBuckets laid_out;
    const Nanoseconds makespan = order_structured(input(), BucketSearch::descending, laid_out, fixed).value();
    return 1 - braid::seconds(makespan) / replayed(fixed);
  }

 private:
  PolicyInput input() {
    return {study_.workload, study_.samples, latency_, study_.cost.profile().memory_bytes,
            deployment_,     microbatches_,  none_};
  }
  double replayed(const FixedPlan& fixed) {
    return predict(fixed, {study_.workload, study_.samples}, latency_, study_.input().judge, Outlook::glance)
        .step_seconds;
  }

  std::vector<StudyTask> any_tasks(std::int64_t count) {
    const auto below = [&](std::uint64_t most) { return static_cast<std::int64_t>(random_.next_below(most)); };
    std::vector<StudyTask> tasks;
    for (std::int64_t t = 0; t < count; ++t)
      tasks.push_back({64 * (1 + below(8)), 8 + below(33), 100, 8 << below(3), false});
    return tasks;
  }

  const OptionValues none_;
  RandomStream random_;
  Study study_;
  std::int64_t microbatches_;
  ClockLatency latency_;
  std::vector<ReplicaShape> deployment_;
};

/// How much longer a step takes than with every N and P laid out, as a share.
struct LayoutLosses {
  double mean = 0, worst = 0;
  std::uint64_t none = 0;  ///< instances that lose nothing
};

inline LayoutLosses layout_losses(const LayoutSetting& setting) {
  LayoutLosses losses;
  MuxTuneOptions all;
  all.lays_out_all = true;
  for (std::uint64_t seed = 0; seed < setting.instances; ++seed) {
    LayoutInstance instance(setting, seed);
    const double loss = instance.seconds({}) / instance.seconds(all) - 1;
    losses.mean += loss / static_cast<double>(setting.instances);
    losses.worst = std::max(losses.worst, loss);
    losses.none += loss <= 0;
  }
  return losses;
}

}  // namespace braid::planner::testing
