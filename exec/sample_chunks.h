#pragma once

#include <map>
#include <vector>

#include "exec/batch.h"

namespace braid::exec {

/// One sequence of a microbatch that is under way.
struct SequencePlace {
  planner::MicrobatchId microbatch = 0;
  std::size_t sequence = 0;  ///< of Batch::sequences
};

/// Which microbatches under way on a stage hold the tokens of which samples. Chunks of a sample go forward in order and
/// backward in reverse (MuxTune §3.5), so that a chunk's earlier ones are under way as long as it is.
class SampleChunks {
 public:
  /// The microbatch goes forward: per sequence the chunks with its sample's earlier tokens, in order.
  std::vector<std::vector<SequencePlace>> enter(planner::MicrobatchId id, const Batch& batch);
  /// It has gone backward.
  void leave(planner::MicrobatchId id, const Batch& batch);

 private:
  struct Held {
    std::vector<SequencePlace> chunks;
    std::int64_t tokens = 0;
  };
  std::map<SamplePlace, Held> held_;
};

}  // namespace braid::exec
