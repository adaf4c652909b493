#include "planner/muxtune/htask_costs.h"

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
      const RunPrices::TokenPasses passes = prices_.token_passes(stage_, loads_[first], pass_);
      std::int64_t tokens = 0, scored = 0;
      bool asked = false;
      for (std::size_t last = first; last < count; ++last) {
        tokens += loads_[last].tokens;
        scored += loads_[last].scored;
        for (const auto& [slot, call] : calls_of(last)) add(*call, together[slot]);
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
  /// A slot by its place in `slots_`.
  using NumberedCall = std::pair<std::size_t, const SharedCall*>;

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
      if (like_last) {
        tasks_.push_back(tasks_.back());
        continue;
      }
      const std::size_t begin = calls_.size();
      number(prices_.shared_calls(stage_, loads_[t], pass_));
      tasks_.emplace_back(begin, calls_.size() - begin);
    }
  }

  std::span<const NumberedCall> calls_of(std::size_t task) const {
    return std::span(calls_).subspan(tasks_[task].first, tasks_[task].second);
  }

  void number(const RunPrices::SharedCalls& calls) {
    std::size_t next = 0;
    for (const auto& [slot, call] : calls) {
      // Mostly all tasks have the same.
      const bool in_turn = next < slots_.size() && slots_[next] == slot;
      const std::size_t place =
          in_turn ? next : static_cast<std::size_t>(std::find(slots_.begin(), slots_.end(), slot) - slots_.begin());
      if (place == slots_.size()) slots_.push_back(slot);
      calls_.emplace_back(place, &call);
      ++next;
    }
  }

  /// Attention has one launch for all sequences; adapters only where they run side by side.
  void add(const SharedCall& call, SharedCall& together) const {
    together.device = call.device;
    if (call.attends) {
      together.attends = true;
      together.attention += call.attention;
      together.layers = call.layers;
      together.launches = std::max(together.launches, call.launches);
    } else if (loads_.front().kernels == AdapterKernels::side_by_side) {
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
      const double shared = call.attends ? prices_.cost().attention_seconds(call.attention, call.layers)
                                         : std::max(call.seconds, call.weighted);
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
  std::vector<NumberedCall> calls_;
  std::vector<std::pair<std::size_t, std::size_t>> tasks_;  // the first of its calls, and how many
};

}  // namespace

void HTaskCosts::ask(RunPrices& prices, const costmodel::StageShape& stage, std::span<const MicrobatchLoad> loads,
                     const Fullness& fullness) {
  PassTable(prices, stage, loads, Pass::forward, fullness).run(seconds_[0]);
  PassTable(prices, stage, loads, Pass::backward, fullness).run(seconds_[1]);
}

}  // namespace braid::planner
