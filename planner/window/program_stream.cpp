#include "planner/window/program_stream.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "planner/window/bin_batcher.h"
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
  rules.blocking_messages = fixed.schedule.blocking_messages;
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
  if (!turn_) return;
  turn_->batcher->stop(task);
  for (std::vector<WindowStep>& round : turn_->upcoming)
    std::erase_if(round, [&](const WindowStep& step) { return step.task == task; });
  const std::size_t gone =
      std::erase_if(turn_->upcoming, [](const std::vector<WindowStep>& round) { return round.empty(); });
  if (gone > 0) turn_->windows.back().rounds_left -= gone;
}

void ProgramStream::end() {
  last_ = window_;
  if (turn_ && !turn_->upcoming.empty()) {
    turn_->windows.back().rounds_left -= turn_->upcoming.size();
    turn_->upcoming.clear();
  }
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
  // All of its tasks may have been stopped.
  std::erase_if(windows, [](const LaidOut& window) { return window.rounds_left == 0 && window.steps.empty(); });
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
  Slice slice;
  slice.window = window;
  slice.steps = window_steps(fixed_, input_, window);
  const std::unique_ptr<Batcher> batcher = make_batcher(fixed_, input_);
  for (std::vector<WindowStep>& round : rounds_of(slice.steps)) batcher->push(window, std::move(round));
  batcher->end();
  std::vector<HTaskRound> htasks;
  while (std::optional<Round> round = batcher->pull())
    std::move(round->htasks.begin(), round->htasks.end(), std::back_inserter(htasks));
  for (std::size_t replica = 0; replica < fixed_.deployment.size(); ++replica)
    schedule.orders.push_back(compute_orders(fixed_, htasks, replica));
  slice.microbatches = schedule.microbatches = microbatches_of(htasks);
  slice.program = lower(schedule);
  return slice;
}

void ProgramStream::begin_turn() {
  turn_.emplace(fixed_, input_, rules_, steps_before(fixed_, input_, window_), window_ << kInstructionIdBits);
  turn_->end = end_of_turn(fixed_, input_, window_);
}

/// Whether every stage has been fed all of the window's Steps.
bool ProgramStream::is_complete(const LaidOut& window) const {
  return window.rounds_left == 0 && turn_->lowering.fewest_steps() >= window.steps_so_far;
}

/// Another round, or the end of the turn.
void ProgramStream::lay_out_more() {
  if (const std::optional<Round> round = next_round()) {
    LaidOut& window = *std::find_if(turn_->windows.begin(), turn_->windows.end(),
                                    [&](const LaidOut& one) { return one.window == round->window; });
    --window.rounds_left;
    window.steps.insert(window.steps.end(), round->steps.begin(), round->steps.end());
    window.steps_so_far = turn_->steps += static_cast<std::int64_t>(round->steps.size());
    window.rounds_so_far = ++turn_->rounds;
    const std::vector<Microbatch> microbatches = microbatches_of(round->htasks);
    window.microbatches.insert(window.microbatches.end(), microbatches.begin(), microbatches.end());
    turn_->lowering.push(microbatches, turn_->units.push(*round, microbatches));
  } else {
    turn_->units.end();
    turn_->ended = true;
  }
  for (std::size_t replica = 0; replica < fixed_.deployment.size(); ++replica) {
    const std::vector<StageOrder> orders = turn_->units.advance(replica);
    for (std::size_t stage = 0; stage < orders.size(); ++stage) turn_->lowering.feed(replica, stage, orders[stage]);
  }
  if (turn_->ended) turn_->lowering.finish();
}

/// The next one whose microbatches are decided; nothing where the turn ends.
std::optional<Round> ProgramStream::next_round() {
  std::optional<Round> round = turn_->batcher->pull();
  while (!round && !turn_->pushed_all) {
    push_round();
    round = turn_->batcher->pull();
  }
  return round;
}

/// Of this window or the next that has any, or the end.
void ProgramStream::push_round() {
  while (turn_->upcoming.empty() && window_ < std::min(last_, turn_->end)) {
    for (std::vector<WindowStep>& round : rounds_of(window_steps(fixed_, input_, window_)))
      turn_->upcoming.push_back(std::move(round));
    if (!turn_->upcoming.empty()) turn_->windows.push_back({window_, {}, {}, 0, 0, turn_->upcoming.size()});
    ++window_;
  }
  if (turn_->upcoming.empty()) {
    turn_->batcher->end();
    turn_->pushed_all = true;
    return;
  }
  turn_->batcher->push(turn_->windows.back().window, std::move(turn_->upcoming.front()));
  turn_->upcoming.pop_front();
}

Program window_program(const FixedPlan& fixed, const WindowInput& input, std::int64_t window) {
  std::optional<Slice> slice = ProgramStream(fixed, input, window, window + 1).next();
  BRAID_CHECK(slice.has_value(), "window {} has no steps", window);
  return std::move(slice->program);
}

std::vector<Program> programs_around(const FixedPlan& fixed, const WindowInput& input, std::int64_t window) {
  const std::int64_t filled = streams(fixed) ? std::max<std::int64_t>(0, window - 2) : window;
  ProgramStream stream(fixed, input, fixed.batching.bins ? first_laid_out_for(fixed, filled) : filled, window + 2);
  std::vector<Program> programs;
  while (std::optional<Slice> slice = stream.next()) {
    if (slice->window > window) break;
    if (slice->window >= filled) programs.push_back(std::move(slice->program));
  }
  return programs;
}

}  // namespace braid::planner
