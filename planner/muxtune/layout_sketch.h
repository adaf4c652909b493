#pragma once

#include "planner/muxtune/clock_sketch.h"
#include "planner/muxtune/step_end.h"

namespace braid::planner {

/// What steps of partitions into hTasks and groupings into buckets take by Eq. 3's latencies and the structured
/// template, before samples are laid out.
class LayoutSketch {
 public:
  using Buckets = std::vector<std::vector<std::int32_t>>;

  /// `fixed` has deployment and storage; `loads`: one part of each task, in the order of the runs. All that it is given
  /// must outlive it.
  LayoutSketch(const PolicyInput& input, const FixedPlan& fixed, std::span<const costmodel::StageShape> stages,
               std::span<const costmodel::MicrobatchLoad> loads, const RunCosts& costs);

  /// What no grouping of the partition is faster than.
  double busiest_stage_seconds(const FusedTasks& partition) const;

  /// A bucket's clocks: how many, and what a mean one takes on each stage.
  struct BucketClocks {
    std::int64_t count = 1;
    std::vector<double> forward, backward;
  };
  std::vector<BucketClocks> clocks(const FusedTasks& partition, const Buckets& buckets);

  /// What the template is no faster than: a stage's work; before it the way forward through the stages below of the
  /// bucket that goes first, the one with the longest clock; after it the shortest way back.
  double busiest_stage_seconds(std::span<const BucketClocks> buckets) const;

  Nanoseconds step(std::span<const BucketClocks> buckets) const;

 private:
  Nanoseconds message_time(std::size_t clocks) const;

  const PolicyInput& input_;
  const FixedPlan& fixed_;
  std::span<const costmodel::StageShape> stages_;
  const RunCosts& costs_;
  std::int64_t tokens_ = 0;  // of one part of all tasks
  ClockSketch clocks_;
  StepEnd end_;
};

}  // namespace braid::planner
