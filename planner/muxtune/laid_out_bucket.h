#pragma once

#include <unordered_map>

#include "planner/muxtune/pipeline_template.h"
#include "planner/plan/stash_budget.h"

namespace braid::planner {

/// A bucket in every task's first global batch on the first replica, whose shape stands for all: what each of its
/// clocks takes and holds on each stage.
struct LaidOutBucket {
  /// Per clock; of bucket 0.
  std::vector<PipelineJob> jobs;
  bool timed = false;  ///< whether the jobs have their times, which are dearer to come by

  /// Microbatches of one hTask mostly need the same scratch: of neighbours that look alike the one with more loss.
  struct Microbatches {
    costmodel::MicrobatchLoad load;
    std::vector<Bytes> scratch;  ///< per stage
  };
  std::vector<Microbatches> unlike;

  std::int64_t tokens = 0, chunks = 0;  ///< of all clocks

  /// Per clock and chunk the microbatches that go together, until the jobs have their times.
  std::vector<std::vector<std::vector<costmodel::MicrobatchLoad>>> clocks;
};

bool look_alike(const costmodel::MicrobatchLoad& a, const costmodel::MicrobatchLoad& b);

/// Lays out each bucket once, for any number of plans that have deployment, number of microbatches, policy and cost
/// model in common, and sets of tasks whose `PolicyInput::kinds` mean the same. Not for concurrent use.
class LaidOutBuckets {
 public:
  /// Of hTasks of the plan. Stays where it is.
  LaidOutBucket& of(const PolicyInput& input, const FixedPlan& fixed, std::span<const std::int32_t> bucket);
  /// Fills in the jobs' times.
  void time(const PolicyInput& input, LaunchRule rule, LaidOutBucket& bucket) const;

 private:
  using Key = std::vector<std::int64_t>;
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  std::unordered_map<Key, LaidOutBucket, Hash> known_;
};

/// Ranks of each stage of the first replica, which the numbering begins with.
std::vector<std::vector<std::int32_t>> stage_ranks(const ReplicaShape& replica);

}  // namespace braid::planner
