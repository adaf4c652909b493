#pragma once

#include "base/units.h"
#include "sim/cluster/moments.h"
#include "sim/cluster/outages.h"

namespace braid::sim {

/// How instances come and change.
struct InstanceRules {
  /// What tasks of a kind need loaded before they run.
  struct Backbone {
    std::int32_t name = 0;
    double load_seconds = 0;  ///< until a new instance, or one whose layers move, has it
  };

  std::vector<Backbone> backbones = {};  ///< per kind; left out: nothing is loaded
  /// Instances begin with the fewest GPUs of TaskSets::sizes and get more as tasks join, one for each (MuxTune §5.4:
  /// up, then out where the largest has as many tasks as GPUs); they keep them until their last task leaves.
  bool scales = false;
  double replan_seconds = 0;         ///< that an instance stands still for when a task joins or leaves others
  double horizon_seconds = kNever;   ///< after the first submission; all is over then
  Outages outages = {};              ///< by node and GPU of the pool
  double checkpoint_seconds = 1800;  ///< of an instance's time between its checkpoints
  double usage_bin_seconds = kHour;  ///< of ClusterRun::usage
  bool keeps_timeline = false;       ///< ClusterRun::stretches and ::breaks
  double audited_share = 0;          ///< of sets that instances change to
  std::uint64_t audit_seed = 0;
};

}  // namespace braid::sim
