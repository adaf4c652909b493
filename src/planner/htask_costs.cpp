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

  std::vector<double> run() {
    const std::size_t count = loads_.size();
    for (std::size_t t = 0; t < count; ++t) {
      // Sorted by tokens, tasks alike are neighbours.
      const bool like_last = t > 0 && loads_[t] == loads_[t - 1];
      tasks_.push_back(like_last ? tasks_.back() : numbered(prices_.shared_calls(stage_, loads_[t], pass_)));
    }
    std::vector<double> seconds(count * count, 0);
    for (std::size_t first = 0; first < count; ++first) {
      std::vector<SharedCall> together(slots_.size());
      MicrobatchLoad run;
      run.tasks = {loads_[first].tasks.front()};
      run.kernels = loads_[first].kernels;
      RunPrices::TokenPasses& tokens = prices_.token_passes(stage_, run, pass_);
      bool asked = false;
      for (std::size_t last = first; last < count; ++last) {
        run.tokens += loads_[last].tokens;
        run.scored += loads_[last].scored;
        for (const auto& [slot, call] : tasks_[last]) add(call, together[slot]);
        const double fullness = fullness_of(first, last);
        if (fullness <= 0) {
          if (asked) break;
          continue;
        }
        asked = true;
        seconds[first * count + last] = total(tokens.of(filled(run, fullness)), together);
      }
    }
    return seconds;
  }

 private:
  double fullness_of(std::size_t first, std::size_t last) const {
    return fullness_ ? fullness_(static_cast<std::int32_t>(first), static_cast<std::int32_t>(last)) : 1;
  }

  static MicrobatchLoad filled(MicrobatchLoad run, double fullness) {
    if (fullness != 1) {
      run.tokens = std::llround(fullness * static_cast<double>(run.tokens));
      run.scored = std::llround(fullness * static_cast<double>(run.scored));
    }
    run.tasks.front().tokens = run.tokens;
    return run;
  }

  /// Slots by their place in `slots_`.
  std::vector<std::pair<std::size_t, SharedCall>> numbered(const RunPrices::SharedCalls& calls) {
    std::vector<std::pair<std::size_t, SharedCall>> numbers;
    for (const auto& [slot, call] : calls) {
      const auto known = std::find(slots_.begin(), slots_.end(), slot);
      numbers.emplace_back(known - slots_.begin(), call);
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
  std::vector<std::vector<std::pair<std::size_t, SharedCall>>> tasks_;  // slots by their place in `slots_`
};

}  // namespace

HTaskCosts::HTaskCosts(RunPrices& prices, const costmodel::StageShape& stage, std::span<const MicrobatchLoad> loads,
                       const Fullness& fullness)
    : count_(static_cast<std::int32_t>(loads.size())) {
  seconds_[0] = PassTable(prices, stage, loads, Pass::forward, fullness).run();
  seconds_[1] = PassTable(prices, stage, loads, Pass::backward, fullness).run();
}

}  // namespace braid::planner
