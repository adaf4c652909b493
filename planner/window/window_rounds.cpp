#include "planner/window/window_rounds.h"

#include <algorithm>

#include "base/error.h"

namespace braid::planner {
namespace {

constexpr int kMicrobatchIdBits = 24;

}  // namespace

WindowRounds::WindowRounds(const FixedPlan& fixed, const WindowInput& input, std::int64_t window)
    : fixed_(fixed),
      input_(input),
      steps_(window_steps(fixed, input, window)),
      next_id_(window << kMicrobatchIdBits),
      end_id_((window + 1) << kMicrobatchIdBits) {}

WindowRounds::Round WindowRounds::next() {
  Round round;
  while (!done() && (round.steps.empty() || steps_[next_].round == round.steps.front().round)) {
    const WindowStep& first = steps_[next_];
    const auto begin = steps_.begin() + static_cast<std::ptrdiff_t>(next_);
    const auto end = std::find_if(begin, steps_.end(), [&](const WindowStep& step) {
      return step.htask != first.htask || step.round != first.round;
    });
    round.htasks.push_back({first.htask, first.round, chunk_groups(fixed_, input_, std::span(begin, end), next_id_)});
    round.steps.insert(round.steps.end(), begin, end);
    next_ = static_cast<std::size_t>(end - steps_.begin());
  }
  BRAID_CHECK(next_id_ <= end_id_, "a window has more than 2^{} microbatches", kMicrobatchIdBits);
  return round;
}

void WindowRounds::stop(TaskIndex task) {
  const auto left = steps_.begin() + static_cast<std::ptrdiff_t>(next_);
  steps_.erase(std::remove_if(left, steps_.end(), [&](const WindowStep& step) { return step.task == task; }),
               steps_.end());
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
