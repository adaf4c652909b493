#include "planner/htask_costs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace braid::planner {
namespace {

using costmodel::AdapterKernels;
using costmodel::CostModel;
using costmodel::MicrobatchLoad;
using costmodel::Operator;
using costmodel::OperatorCall;
using costmodel::Pass;

bool belongs_to_a_task(Operator op) {
  return op == Operator::attention || op == Operator::lora || op == Operator::lora_dropout;
}

/// Calls whose kernels may share launches: attention, and the adapters of one module group.
struct SharedCall {
  double seconds = 0, weighted = 0, launches = 0;
  bool device = false;   // launched from a host, beside it
  bool attends = false;  // else an adapter
};

/// What of a pass depends on nothing but tokens: seconds, and what the host needs to launch it.
struct TokenPass {
  double seconds = 0, device = 0, host = 0;
};

class PassTable {
 public:
  PassTable(const CostModel& cost, const costmodel::BackboneShape& backbone, const costmodel::StageShape& stage,
            std::span<const MicrobatchLoad> loads, Pass pass, const HTaskCosts::Fullness& fullness)
      : cost_(cost), backbone_(backbone), stage_(stage), loads_(loads), pass_(pass), fullness_(fullness) {}

  std::vector<double> run() {
    const std::size_t count = loads_.size();
    for (std::size_t t = 0; t < count; ++t) {
      // Sorted by tokens, tasks alike are neighbours.
      const bool like_last = t > 0 && loads_[t] == loads_[t - 1];
      tasks_.push_back(like_last ? tasks_.back() : numbered(shared_calls(loads_[t])));
    }
    std::vector<double> seconds(count * count, 0);
    for (std::size_t first = 0; first < count; ++first) {
      std::vector<SharedCall> together(slots_.size());
      MicrobatchLoad run;
      run.tasks = {loads_[first].tasks.front()};
      run.kernels = loads_[first].kernels;
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
        seconds[first * count + last] = total(token_pass(filled(run, fullness)), together);
      }
    }
    return seconds;
  }

 private:
  /// Adapters are told apart by the frozen product that they stand beside; their own shapes may differ between tasks.
  using Slot = std::tuple<bool, Pass, std::int64_t, std::int64_t>;

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

  std::map<Slot, SharedCall> shared_calls(const MicrobatchLoad& load) const {
    std::map<Slot, SharedCall> calls;
    costmodel::OperatorShape product{};
    for (const OperatorCall& call : costmodel::stage_operators(backbone_, stage_, load, pass_)) {
      if (call.op == Operator::linear) product = call.shape;
      if (!belongs_to_a_task(call.op)) continue;
      const bool attends = call.op == Operator::attention;
      const costmodel::CallPrice price = cost_.price(call);
      // The bottom layer's first product has no backward pass to stand beside.
      const bool alone = attends || call.pass == Pass::parameters;
      const Slot slot{attends, call.pass, alone ? 0 : product[0], alone ? 0 : product[1]};
      SharedCall& shared = calls[slot];
      shared.seconds = std::max(shared.seconds, price.seconds);
      shared.weighted += price.seconds * price.utilization;
      shared.launches = std::max(shared.launches, price.launches);
      shared.device = price.launches > 0;
      shared.attends = attends;
    }
    return calls;
  }

  /// Slots by their place in `slots_`.
  std::vector<std::pair<std::size_t, SharedCall>> numbered(const std::map<Slot, SharedCall>& calls) {
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

  /// The parts that depend on all tokens, and those that depend on the scored rows alone (the head).
  TokenPass token_pass(const MicrobatchLoad& run) {
    MicrobatchLoad unscored = run;
    unscored.scored = 0;
    TokenPass pass = known_pass(stage_, unscored, run.tokens, by_tokens_);
    if (!stage_.has_head) return pass;
    MicrobatchLoad scored = run;
    scored.tokens = run.scored;
    scored.tasks.clear();
    const TokenPass head = known_pass({0, false, true, stage_.tp}, scored, run.scored, by_scored_);
    return {pass.seconds + head.seconds, pass.device + head.device, pass.host + head.host};
  }

  const TokenPass& known_pass(const costmodel::StageShape& stage, const MicrobatchLoad& load, std::int64_t key,
                              std::map<std::int64_t, TokenPass>& known) const {
    auto [entry, is_new] = known.try_emplace(key);
    if (!is_new) return entry->second;
    TokenPass& pass = entry->second;
    for (const OperatorCall& call : costmodel::stage_operators(backbone_, stage, load, pass_)) {
      if (belongs_to_a_task(call.op) || (stage.layers == 0 && call.op != Operator::head_loss)) continue;
      const costmodel::CallPrice price = cost_.price(call);
      pass.seconds += price.seconds;
      if (price.launches > 0) pass.device += price.seconds;
      pass.host += price.launches * cost_.profile().launch_seconds;
    }
    return pass;
  }

  double total(const TokenPass& pass, std::span<const SharedCall> together) const {
    double seconds = pass.seconds, device = pass.device, host = pass.host;
    for (const SharedCall& call : together) {
      const double shared = std::max(call.seconds, call.weighted);
      seconds += shared;
      if (call.device) device += shared;
      host += call.launches * cost_.profile().launch_seconds;
    }
    return seconds + std::max(0.0, host - device);
  }

  const CostModel& cost_;
  const costmodel::BackboneShape& backbone_;
  const costmodel::StageShape& stage_;
  std::span<const MicrobatchLoad> loads_;
  Pass pass_;
  const HTaskCosts::Fullness& fullness_;
  std::vector<Slot> slots_;
  std::vector<std::vector<std::pair<std::size_t, SharedCall>>> tasks_;  // slots by their place in `slots_`
  std::map<std::int64_t, TokenPass> by_tokens_, by_scored_;
};

}  // namespace

HTaskCosts::HTaskCosts(const CostModel& cost, const costmodel::BackboneShape& backbone,
                       const costmodel::StageShape& stage, std::span<const MicrobatchLoad> loads,
                       const Fullness& fullness)
    : count_(static_cast<std::int32_t>(loads.size())) {
  seconds_[0] = PassTable(cost, backbone, stage, loads, Pass::forward, fullness).run();
  seconds_[1] = PassTable(cost, backbone, stage, loads, Pass::backward, fullness).run();
}

}  // namespace braid::planner
