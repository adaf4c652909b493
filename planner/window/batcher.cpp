#include "planner/window/batcher.h"

#include <algorithm>
#include <deque>

#include "base/error.h"
#include "planner/window/bin_batcher.h"

namespace braid::planner {
namespace {

constexpr int kMicrobatchIdBits = 24;

/// Every round by itself.
class RoundByRound final : public Batcher {
 public:
  RoundByRound(const FixedPlan& fixed, const WindowInput& input) : fixed_(fixed), input_(input) {}

  void push(std::int64_t window, std::vector<WindowStep> round) override {
    rounds_.push_back({window, std::move(round), {}});
  }
  void end() override {}
  void stop(TaskIndex task) override {
    for (Round& round : rounds_) std::erase_if(round.steps, [&](const WindowStep& step) { return step.task == task; });
  }

  std::optional<Round> pull() override {
    if (rounds_.empty()) return std::nullopt;
    Round round = std::move(rounds_.front());
    rounds_.pop_front();
    for (auto first = round.steps.begin(); first != round.steps.end();) {
      const auto last =
          std::find_if(first, round.steps.end(), [&](const WindowStep& step) { return step.htask != first->htask; });
      round.htasks.push_back(
          {first->htask, first->round, chunk_groups(fixed_, input_, {first, last}, ids_.next(round.window))});
      first = last;
    }
    return round;
  }

 private:
  const FixedPlan& fixed_;
  const WindowInput& input_;
  std::deque<Round> rounds_;
  MicrobatchIds ids_;
};

}  // namespace

MicrobatchId& MicrobatchIds::next(std::int64_t window) {
  if (window != window_) {
    window_ = window;
    next_ = window << kMicrobatchIdBits;
  }
  BRAID_CHECK(next_ >> kMicrobatchIdBits == window, "a window has more than 2^{} microbatches", kMicrobatchIdBits);
  return next_;
}

std::unique_ptr<Batcher> make_batcher(const FixedPlan& fixed, const WindowInput& input) {
  if (fixed.batching.bins) return make_bin_batcher(fixed, input);
  return std::make_unique<RoundByRound>(fixed, input);
}

std::vector<std::vector<WindowStep>> rounds_of(std::span<const WindowStep> steps) {
  std::vector<std::vector<WindowStep>> rounds;
  for (const WindowStep& step : steps) {
    if (rounds.empty() || rounds.back().front().round != step.round) rounds.emplace_back();
    rounds.back().push_back(step);
  }
  return rounds;
}

std::vector<Microbatch> microbatches_of(std::span<const HTaskRound> rounds) {
  std::vector<Microbatch> microbatches;
  for (const HTaskRound& round : rounds) {
    for (const std::vector<ChunkGroup>& groups : round.groups) {
      for (const ChunkGroup& group : groups) microbatches.insert(microbatches.end(), group.begin(), group.end());
    }
  }
  std::sort(microbatches.begin(), microbatches.end(),
            [](const Microbatch& a, const Microbatch& b) { return a.id < b.id; });
  return microbatches;
}

}  // namespace braid::planner
