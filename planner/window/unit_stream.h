#pragma once

#include <map>
#include <optional>

#include "planner/program/orders.h"
#include "planner/window/window_rounds.h"

namespace braid::planner {

/// Whether the plan's pipeline goes on from step to step without a drain.
bool streams(const FixedPlan& fixed);

/// What the stages of such a plan's one replica compute, in order: rounds follow one another, LoRAPP's hTask by hTask,
/// MuxTune's bucket by bucket and clock by clock. A unit waits for the Steps of its hTask, or of its bucket.
class UnitStream {
 public:
  explicit UnitStream(const FixedPlan& fixed);

  /// All hTasks of a round. Messages take their share of a mean pass of the first one.
  void push(std::span<const HTaskRound> round);
  /// No further rounds come.
  void end();
  /// Per stage, the passes that follow those of earlier calls, as far as what is pushed decides them.
  std::vector<StageOrder> advance();

 private:
  struct Unit {
    PipelineUnit unit;
    std::int64_t work = 0;
  };
  /// What waits for the same Steps: an hTask or a bucket, and its units of a round.
  using Line = std::pair<std::int32_t, std::vector<Unit>>;
  std::vector<Line> lines_of_htasks(std::span<const HTaskRound> round) const;
  std::vector<Line> lines_of_buckets(std::span<const HTaskRound> round) const;

  const FixedPlan& fixed_;
  std::optional<LoraPipelineStream> pipeline_;  // from the first round on
  std::map<MicrobatchId, PipelineUnit> units_;  // that have not left the pipeline, by their places in the stream
  std::int32_t pushed_ = 0;
  std::map<std::int32_t, std::int32_t> last_;  // of each line the place of the last unit
};

}  // namespace braid::planner
