#pragma once

#include <map>
#include <optional>

#include "planner/program/batch_key.h"
#include "planner/program/orders.h"
#include "planner/window/batcher.h"

namespace braid::planner {

/// Whether the plan's pipeline goes on from step to step without a drain.
bool streams(const FixedPlan& fixed);

/// What the stages of such a plan's replicas compute, in order: rounds follow one another, LoRAPP's hTask by hTask,
/// MuxTune's bucket by bucket and clock by clock. A unit waits for the Steps of its hTask, or of its bucket; where rows
/// are packed into bins for those of the tasks in it.
///
/// Replicas meet in the syncs of a step. A unit that waits for a Step waits on its replica for all passes that a sync
/// up to that step's waits for. By induction over the syncs, no replica then waits for one that waits for it.
class UnitStream {
 public:
  explicit UnitStream(const FixedPlan& fixed);

  /// All hTasks of a round, and their microbatches. Messages take their share of a mean pass of the first round. The
  /// round's steps are returned in the order in which they are to be synced.
  std::vector<BatchKey> push(const Round& round, std::span<const Microbatch> microbatches);
  /// No further rounds come.
  void end();
  /// Per stage, the passes that follow those of earlier calls, as far as what is pushed decides them.
  std::vector<StageOrder> advance(std::size_t replica);

 private:
  struct Unit {
    PipelineUnit unit;
    std::int64_t work = 0;
    MicrobatchId first = 0;         // its first microbatch
    std::vector<BatchKey> batches;  // whose samples are in it
  };
  /// What waits for the same Steps: an hTask or a bucket, and its units of a round.
  using Line = std::pair<std::int32_t, std::vector<Unit>>;
  /// A replica's part.
  struct Pipe {
    std::optional<LoraPipelineStream> pipeline;  // from the first round on
    std::map<MicrobatchId, PipelineUnit> units;  // that have not left the pipeline, by their places in the stream
    std::int32_t pushed = 0;
    std::map<std::int32_t, std::int32_t> last;  // of each line the place of the last unit
  };

  std::vector<Line> lines_of_htasks(const Round& round, std::size_t replica) const;
  std::vector<Line> lines_of_buckets(const Round& round, std::span<const Microbatch> microbatches) const;
  std::vector<BatchKey> sync_order_of(const Round& round, std::span<const Microbatch> microbatches);
  void place_gates(std::span<const BatchKey> syncs, std::span<const std::vector<Line>> lines);
  std::int32_t gate_of(const Unit& unit, const Line& line, std::size_t replica) const;

  const FixedPlan& fixed_;
  bool by_line_;  // one replica, which knows a line's last unit when the next round comes
  std::vector<Pipe> pipes_;
  std::map<BatchKey, MicrobatchId> last_ids_;            // of the microbatches of batches that are not synced
  MicrobatchId synced_up_to_ = kNone;                    // of all syncs so far the last microbatch
  std::map<BatchKey, std::vector<std::int32_t>> gates_;  // per replica the place of what a batch's Step waits for
};

}  // namespace braid::planner
