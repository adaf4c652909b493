#pragma once

#include <deque>
#include <optional>

#include "planner/program/lowering.h"
#include "planner/window/unit_stream.h"

namespace braid::planner {

/// What is made of one window.
struct Slice {
  std::int64_t window = 0;
  std::vector<WindowStep> steps;         ///< that the window holds, round by round
  std::vector<Microbatch> microbatches;  ///< of those, ascending by id
  /// Holds their Step instructions, save those that an earlier slice could not be cut without. Where the pipeline does
  /// not drain, it holds forwards of later steps, and lacks those that the slice before holds.
  Program program;
  bool begins = true;  ///< nothing is under way before it
  bool operator==(const Slice&) const = default;
};

/// A plan's windows, one Program after another: a pure function of the plan, its input, the windows, and which tasks
/// were stopped after which slice. Ids continue from slice to slice.
///
/// Where the plan's pipeline drains every window stands by itself. Else slices chain, each cut as early as `cut` may,
/// and the pipeline drains between turns and after the last window alone; at most the look-ahead that the orders need,
/// a round or two, is laid out beyond a slice.
class ProgramStream {
 public:
  /// Windows [first, last); `fixed` and what `input` refers to must outlive it.
  ProgramStream(const FixedPlan& fixed, const WindowInput& input, std::int64_t first, std::int64_t last);
  ProgramStream(const ProgramStream&) = delete;
  ProgramStream& operator=(const ProgramStream&) = delete;

  /// The next window's that has steps; nothing past the last.
  std::optional<Slice> next();

  /// Leaves a task out of what is not laid out yet.
  void stop(TaskIndex task);
  /// Lays out no more: what is under way ends, a part of a window perhaps.
  void end();

 private:
  /// A window whose slice has not been taken.
  struct LaidOut {
    std::int64_t window = 0;
    std::vector<WindowStep> steps;
    std::vector<Microbatch> microbatches;
    std::int64_t steps_so_far = 0;   // in the turn
    std::int64_t rounds_so_far = 0;  // likewise
    std::size_t rounds_left = 0;     // that are not laid out
  };
  /// What runs without a drain.
  struct Turn {
    Turn(const FixedPlan& fixed, const WindowInput& input, const LoweringRules& rules,
         std::vector<std::int64_t> next_batch, InstructionId first_id)
        : batcher(make_batcher(fixed, input)), units(fixed), lowering(rules, std::move(next_batch), first_id) {}

    std::unique_ptr<Batcher> batcher;
    UnitStream units;
    Lowering lowering;
    std::deque<std::vector<WindowStep>> upcoming;  // rounds of the last window that the batcher does not have yet
    bool pushed_all = false;
    std::int64_t end = 0;  // the window after its last
    std::deque<LaidOut> windows;
    std::int64_t steps = 0;   // of all windows so far
    std::int64_t rounds = 0;  // likewise
    bool begins = true;
    bool ended = false;
  };

  Slice drained(std::int64_t window) const;
  std::optional<Slice> take();
  void begin_turn();
  void lay_out_more();
  std::optional<Round> next_round();
  void push_round();
  bool is_complete(const LaidOut& window) const;

  const FixedPlan& fixed_;
  WindowInput input_;
  LoweringRules rules_;
  std::int64_t window_ = 0;  // the next one that is laid out
  std::int64_t last_ = 0;
  std::optional<Turn> turn_;
};

/// The Program of a window by itself: nothing is under way before or after.
Program window_program(const FixedPlan& fixed, const WindowInput& input, std::int64_t window);

/// The Programs in which a window's microbatches are under way: its own, and of a stream those of the two windows
/// before, from which on the pipeline fills here.
std::vector<Program> programs_around(const FixedPlan& fixed, const WindowInput& input, std::int64_t window);

}  // namespace braid::planner
