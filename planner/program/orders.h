#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <span>
#include <vector>

#include "planner/program/program.h"

namespace braid::planner {

/// One entry of a stage's compute order.
struct ComputeSlot {
  Kind kind = Kind::forward;  ///< forward or backward
  MicrobatchId microbatch = 0;
  bool joins = false;         ///< one instruction with the slot before, of the same kind: hTasks of one bucket
  std::int32_t subgraph = 0;  ///< of an interleaved stage
  bool operator==(const ComputeSlot&) const = default;
};
using StageOrder = std::vector<ComputeSlot>;

/// All forwards, then all backwards, both in the order given (GPipe, Huang et al. 2019).
StageOrder gpipe_order(std::span<const MicrobatchId> microbatches);

/// One forward, one backward (PipeDream-Flush, Narayanan et al. 2021): stage `stage` of `stages` runs stages − stage −
/// 1 forwards ahead. The order is that of an endless stream cut to these microbatches.
StageOrder one_forward_one_backward_order(std::span<const MicrobatchId> microbatches, int stage, int stages);

/// Interleaved 1F1B (Narayanan et al. 2021, §2.2): stage `stage` of `stages` holds `model_chunks` runs of layers.
/// Microbatches go forward in groups of as many as there are stages, each group through all model chunks before the
/// next, and backward likewise from the last model chunk; 2 (stages − stage − 1) + (model_chunks − 1) · stages forwards
/// run ahead. The last group may be smaller; it goes as if it were whole.
StageOrder interleaved_order(std::span<const MicrobatchId> microbatches, int stage, int stages, int model_chunks);

/// Each microbatch forward and backward before the next begins.
StageOrder one_by_one_order(std::span<const MicrobatchId> microbatches);

/// How far LoRAPP's forward passes run ahead.
enum class LoraPipeline {
  one_forward_one_backward,  ///< at most stages − stage under way; a ready backward pass goes first
  gpipe                      ///< as far as the step gates allow; a ready forward pass goes first
};

/// A microbatch (or unit) of LoRAPP's stream.
struct StreamedMicrobatch {
  MicrobatchId id = 0;
  std::int64_t work = 1;      ///< its forward pass is taken to last so long on every stage, its backward pass alike
  std::int32_t gate = kNone;  ///< place in the stream of the last one of its task's global batch before, if any
};

/// LoRA-aware pipeline parallelism (mLoRA §3.2.1): microbatches of different tasks follow one another without a flush
/// between them. A stage takes a pass that is ready, as the mode says: backward passes when their gradient has come,
/// the next forward pass when its input has, fewer are under way than the mode allows and the stage has ended the
/// backward pass of the gate, after which the task's Step stands. What is ready when is told by the passes' work.
/// Per stage; gates lie before their microbatch.
/// In 1F1B mode a stage has at most `most_under_way` forward passes without their backward pass. `transfer` is what a
/// message takes, as a share of a mean pass.
std::vector<StageOrder> lora_pipeline_orders(std::span<const StreamedMicrobatch> stream, int stages, LoraPipeline mode,
                                             double transfer = 0);

/// The same of a stream that comes piece by piece. What a stage computes when never depends on how much was pushed at
/// once. Keeps nothing of microbatches that have left the pipeline.
class LoraPipelineStream {
 public:
  /// A message takes `transfer` of a pass of `mean_work`.
  LoraPipelineStream(int stages, LoraPipeline mode, double transfer, double mean_work);

  void push(const StreamedMicrobatch& microbatch);
  /// What is pushed from here on enters when all before has left: what was pushed is decided.
  void pause() { paused_ = pushed(); }
  /// Nothing more will be pushed.
  void end() { ended_ = true; }
  /// Per stage the passes that follow those of earlier calls, as far as what is pushed decides them: up to the moment
  /// when the first stage has begun the last forward pass, or to the end.
  std::vector<StageOrder> advance();

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  struct Stage {
    std::size_t forwarded = 0, returned = 0;  // how many
    bool busy = false;
    std::size_t most = 1;  // under way
    StageOrder order;
  };
  /// A microbatch that has not left the pipeline, and when its passes are ready, per stage.
  struct UnderWay {
    StreamedMicrobatch microbatch;
    std::vector<std::int64_t> forward_ready, backward_ready;
  };
  struct Ending {
    std::int64_t time = 0;
    std::size_t stage = 0;
    auto operator<=>(const Ending&) const = default;
  };
  template <typename T>
  using Soonest = std::priority_queue<T, std::vector<T>, std::greater<>>;

  UnderWay& at(std::size_t place) { return under_way_[place - left_]; }
  const UnderWay& at(std::size_t place) const { return under_way_[place - left_]; }
  std::size_t pushed() const { return left_ + under_way_.size(); }
  bool waits_for_more() const { return !ended_ && paused_ != pushed() && stages_.front().forwarded == pushed(); }
  std::int64_t next_moment() const;
  bool may_go_forward(std::size_t s) const;
  bool may_go_backward(std::size_t s) const;
  void start(std::size_t s);
  void go_forward(std::size_t s);
  void go_backward(std::size_t s);
  void arrive(std::int64_t& ready, std::int64_t time);

  LoraPipeline mode_;
  std::int64_t transfer_ = 0;
  std::vector<Stage> stages_;
  std::deque<UnderWay> under_way_;
  std::size_t left_ = 0;    // how many have left the pipeline
  std::size_t paused_ = 0;  // how many had been pushed at the last pause
  bool ended_ = false;
  bool begun_ = false;
  std::int64_t now_ = 0;
  Soonest<Ending> ends_;            // of passes
  Soonest<std::int64_t> arrivals_;  // of messages, when
};

/// As many as there are stages from this one on; where messages take time, one more for each stage behind. A stage and
/// the next take turns: a microbatch's way there, the pass that it meets and the gradient's way back last F + B + 2 C,
/// so that with only one more under way than on the next stage a microbatch leaves that seldom, with two every F + B
/// (for C up to a mean pass).
inline std::int64_t most_under_way(std::int64_t stages_from_here, double transfer) {
  return transfer > 0 ? 2 * stages_from_here - 1 : stages_from_here;
}

/// What goes through a pipeline at once: chunk by chunk, the microbatches that one instruction computes (one of each
/// hTask of a bucket). Mostly one chunk of one microbatch.
struct PipelineUnit {
  std::vector<std::vector<MicrobatchId>> chunks;
};

/// An order over units (their places in `units` as ids) as an order over microbatches: the chunks of a unit forward in
/// order and backward in reverse, so that keys and values are there and their gradients complete.
StageOrder expand(const StageOrder& order, std::span<const PipelineUnit> units);
/// One pass of such an order, behind what is there.
void append_unit(const ComputeSlot& slot, const PipelineUnit& unit, StageOrder& order);

}  // namespace braid::planner
