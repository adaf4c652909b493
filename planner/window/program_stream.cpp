#include "planner/window/program_stream.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "planner/program/sync_order.h"
#include "planner/window/compute_orders.h"

namespace braid::planner {
namespace {

constexpr int kInstructionIdBits = 32;

LoweringRules rules_of(const FixedPlan& fixed, const WindowInput& input) {
  LoweringRules rules;
  rules.replicas = fixed.deployment;
  const costmodel::BackboneShape& backbone = input.workload.backbone;
  for (const workload::Task& task : input.workload.tasks) rules.tasks.push_back({task.optimizer.max_grad_norm > 0});
  rules.bytes_per_token = costmodel::message_bytes_per_token(backbone, fixed.storage);
  rules.blocking_messages = fixed.blocking_messages;
  rules.gradient_bytes = [&backbone, &tasks = input.workload.tasks](TaskIndex task, LayerRange layers) {
    return static_cast<Bytes>(sizeof(float)) * layers.count() *
           tasks[static_cast<std::size_t>(task)].adapter.layer_parameters(backbone);
  };
  return rules;
}

}  // namespace

ProgramStream::ProgramStream(const FixedPlan& fixed, const WindowInput& input, std::int64_t first, std::int64_t last)
    : fixed_(fixed),
      input_(input),
      rules_(rules_of(fixed, input)),
      window_(first),
      last_(input.endless() ? last : std::min(last, window_count(fixed, input))) {}

void ProgramStream::stop(TaskIndex task) {
  input_.stopped.insert(task);
  if (rounds_) rounds_->stop(task);
}

void ProgramStream::end() {
  last_ = window_;
  rounds_.reset();
}

std::optional<Slice> ProgramStream::next() {
  if (!streams(fixed_)) {
    for (; window_ < last_; ++window_) {
      if (!window_steps(fixed_, input_, window_).empty()) return drained(window_++);
    }
    return std::nullopt;
  }
  while (turn_ || window_ < last_) {
    if (!turn_) begin_turn();
    if (std::optional<Slice> slice = take()) return slice;
    if (turn_->ended && turn_->windows.empty()) {
      turn_.reset();
    } else {
      lay_out_more();
    }
  }
  return std::nullopt;
}

/// The first window's slice, when it is whole and more is laid out than it waits for.
std::optional<Slice> ProgramStream::take() {
  std::deque<LaidOut>& windows = turn_->windows;
  if (windows.empty() || !is_complete(windows.front())) return std::nullopt;
  const bool last = turn_->ended && windows.size() == 1;
  std::optional<Program> program =
      last ? turn_->lowering.take_rest() : turn_->lowering.take(windows.front().rounds_so_far - 1);
  if (!program) return std::nullopt;
  LaidOut& window = windows.front();
  Slice slice{window.window, std::move(window.steps), std::move(window.microbatches), std::move(*program),
              std::exchange(turn_->begins, false)};
  windows.pop_front();
  return slice;
}

Slice ProgramStream::drained(std::int64_t window) const {
  Schedule schedule;
  static_cast<LoweringRules&>(schedule) = rules_;
  schedule.next_batch = steps_before(fixed_, input_, window);
  schedule.first_id = window << kInstructionIdBits;
  WindowRounds left(fixed_, input_, window);
  Slice slice;
  slice.window = window;
  std::vector<HTaskRound> htasks;
  while (!left.done()) {
    WindowRounds::Round round = left.next();
    slice.steps.insert(slice.steps.end(), round.steps.begin(), round.steps.end());
    std::move(round.htasks.begin(), round.htasks.end(), std::back_inserter(htasks));
  }
  for (std::size_t replica = 0; replica < fixed_.deployment.size(); ++replica)
    schedule.orders.push_back(compute_orders(fixed_, htasks, replica));
  slice.microbatches = schedule.microbatches = microbatches_of(htasks);
  slice.program = lower(schedule);
  return slice;
}

void ProgramStream::begin_turn() {
  turn_.emplace(fixed_, rules_, steps_before(fixed_, input_, window_), window_ << kInstructionIdBits);
  turn_->end = end_of_turn(fixed_, input_, window_);
}

/// Whether every stage has been fed all of the window's Steps.
bool ProgramStream::is_complete(const LaidOut& window) const {
  const bool comes_on = rounds_ && !rounds_->done() && turn_->windows.back().window == window.window;
  return !comes_on && turn_->lowering.fewest_steps() >= window.steps_so_far;
}

/// Another round, or the end of the turn.
void ProgramStream::lay_out_more() {
  if (const WindowRounds::Round round = next_round(); !round.steps.empty()) {
    LaidOut& window = turn_->windows.back();
    window.steps.insert(window.steps.end(), round.steps.begin(), round.steps.end());
    window.steps_so_far = turn_->steps += static_cast<std::int64_t>(round.steps.size());
    window.rounds_so_far = ++turn_->rounds;
    const std::vector<Microbatch> microbatches = microbatches_of(round.htasks);
    window.microbatches.insert(window.microbatches.end(), microbatches.begin(), microbatches.end());
    turn_->lowering.push(microbatches, plain_sync_order(microbatches));
    turn_->units.push(round.htasks);
  } else {
    turn_->units.end();
    turn_->ended = true;
  }
  const std::vector<StageOrder> orders = turn_->units.advance();
  for (std::size_t stage = 0; stage < orders.size(); ++stage) turn_->lowering.feed(0, stage, orders[stage]);
  if (turn_->ended) turn_->lowering.finish();
}

/// Of this window or the next that has any; empty where the turn ends.
WindowRounds::Round ProgramStream::next_round() {
  while (!rounds_ || rounds_->done()) {
    rounds_.reset();
    if (window_ >= std::min(last_, turn_->end)) return {};
    rounds_.emplace(fixed_, input_, window_++);
    if (!rounds_->done()) turn_->windows.push_back({window_ - 1, {}, {}, 0, 0});
  }
  return rounds_->next();
}

Program window_program(const FixedPlan& fixed, const WindowInput& input, std::int64_t window) {
  std::optional<Slice> slice = ProgramStream(fixed, input, window, window + 1).next();
  BRAID_CHECK(slice.has_value(), "window {} has no steps", window);
  return std::move(slice->program);
}

std::vector<Program> programs_around(const FixedPlan& fixed, const WindowInput& input, std::int64_t window) {
  ProgramStream stream(fixed, input, streams(fixed) ? std::max<std::int64_t>(0, window - 2) : window, window + 2);
  std::vector<Program> programs;
  while (std::optional<Slice> slice = stream.next()) {
    if (slice->window > window) break;
    programs.push_back(std::move(slice->program));
  }
  return programs;
}

}  // namespace braid::planner
