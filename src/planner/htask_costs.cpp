#include "planner/htask_costs.h"

#include <algorithm>
#include <cmath>

namespace braid::planner {
namespace {

using costmodel::AdapterKernels;
using costmodel::MicrobatchLoad;
using costmodel::Pass;

class PassTable {
 public:
  PassTable(RunPrices& prices, const costmodel::StageShape& stage, std::span<const MicrobatchLoad> loads, Pass pass,
            const HTaskCosts::Fullness& fullness)
      : prices_(prices), stage_(stage), loads_(loads), pass_(pass), fullness_(fullness) {}

  void run(std::vector<double>& seconds) {
    const std::size_t count = loads_.size();
    number_tasks();
    std::vector<SharedCall> together;
    for (std::size_t first = 0; first < count; ++first) {
      together.assign(slots_.size(), {});
      RunPrices::TokenPasses& passes = prices_.token_passes(stage_, loads_[first], pass_);
      std::int64_t tokens = 0, scored = 0;
      bool asked = false;
      for (std::size_t last = first; last < count; ++last) {
        tokens += loads_[last].tokens;
        scored += loads_[last].scored;
        for (const auto& [slot, call] : unlike_[tasks_[last]]) add(*call, together[slot]);
        const double fullness = fullness_of(first, last);
        if (fullness <= 0) {
          if (asked) break;
          continue;
        }
        asked = true;
        seconds[first * count + last] = total(passes.of(filled(tokens, fullness), filled(scored, fullness)), together);
      }
    }
  }

 private:
  /// Slots by their place in `slots_`.
  using NumberedCalls = std::vector<std::pair<std::size_t, const SharedCall*>>;

  double fullness_of(std::size_t first, std::size_t last) const {
    return fullness_ ? fullness_(static_cast<std::int32_t>(first), static_cast<std::int32_t>(last)) : 1;
  }

  static std::int64_t filled(std::int64_t tokens, double fullness) {
    return fullness == 1 ? tokens : std::llround(fullness * static_cast<double>(tokens));
  }

  void number_tasks() {
    tasks_.reserve(loads_.size());
    for (std::size_t t = 0; t < loads_.size(); ++t) {
      // Sorted by tokens, tasks alike are neighbours.
      const bool like_last = t > 0 && loads_[t] == loads_[t - 1];
      if (!like_last) unlike_.push_back(numbered(prices_.shared_calls(stage_, loads_[t], pass_)));
      tasks_.push_back(unlike_.size() - 1);
    }
  }

  NumberedCalls numbered(const RunPrices::SharedCalls& calls) {
    NumberedCalls numbers;
    numbers.reserve(calls.size());
    for (const auto& [slot, call] : calls) {
      // Mostly all tasks have the same.
      const std::size_t next = numbers.size();
      const auto known = next < slots_.size() && slots_[next] == slot
                             ? slots_.begin() + static_cast<std::ptrdiff_t>(next)
                             : std::find(slots_.begin(), slots_.end(), slot);
      numbers.emplace_back(known - slots_.begin(), &call);
      if (known == slots_.end()) slots_.push_back(slot);
    }
    return numbers;
  }

  /// Attention has one launch for all sequences; adapters only where they run side by side.
  void add(const SharedCall& call, SharedCall& together) const {
    together.device = call.device;
    if (call.attends || loads_.front().kernels == AdapterKernels::side_by_side) {
      together.seconds = std::max(together.seconds, call.seconds);
      together.weighted += call.weighted;
      together.launches = std::max(together.launches, call.launches);
    } else {
      together.seconds += call.seconds;
      together.launches += call.launches;
    }
  }

  double total(const TokenPass& pass, std::span<const SharedCall> together) const {
    double seconds = pass.seconds, device = pass.device, host = pass.host;
    for (const SharedCall& call : together) {
      const double shared = std::max(call.seconds, call.weighted);
      seconds += shared;
      if (call.device) device += shared;
      host += call.launches * prices_.cost().profile().launch_seconds;
    }
    return seconds + std::max(0.0, host - device);
  }

  RunPrices& prices_;
  const costmodel::StageShape& stage_;
  std::span<const MicrobatchLoad> loads_;
  Pass pass_;
  const HTaskCosts::Fullness& fullness_;
  std::vector<RunPrices::Slot> slots_;
  std::vector<NumberedCalls> unlike_;
  std::vector<std::size_t> tasks_;  // into `unlike_`
};

}  // namespace

void HTaskCosts::ask(RunPrices& prices, const costmodel::StageShape& stage, std::span<const MicrobatchLoad> loads,
                     const Fullness& fullness) {
  PassTable(prices, stage, loads, Pass::forward, fullness).run(seconds_[0]);
  PassTable(prices, stage, loads, Pass::backward, fullness).run(seconds_[1]);
}

}  // namespace braid::planner
