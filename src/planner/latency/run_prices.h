#pragma once

#include <deque>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "costmodel/cost_model.h"
#include "costmodel/operators.h"

namespace braid::planner {

/// Calls whose kernels may share launches: attention, and the adapters of one module group.
struct SharedCall {
  double seconds = 0, weighted = 0, launches = 0;
  bool device = false;   ///< launched from a host, beside it
  bool attends = false;  ///< else an adapter
};

/// What of a pass depends on nothing but tokens: seconds, and what the host needs to launch it.
struct TokenPass {
  double seconds = 0, device = 0, host = 0;
};

/// What costs of runs of tasks (htask_costs.h) are put together from, each asked of the cost model once: for as many
/// tables of one cost model and backbone as are made. Not for concurrent use.
class RunPrices {
 public:
  /// Adapters are told apart by the frozen product that they stand beside; their own shapes may differ between tasks.
  using Slot = std::tuple<bool, costmodel::Pass, std::int64_t, std::int64_t>;
  using SharedCalls = std::vector<std::pair<Slot, SharedCall>>;  ///< ascending by slot

  RunPrices(const costmodel::CostModel& cost, const costmodel::BackboneShape& backbone)
      : cost_(cost), backbone_(backbone) {}

  const costmodel::CostModel& cost() const { return cost_; }

  /// Of one task's microbatch.
  const SharedCalls& shared_calls(const costmodel::StageShape& stage, const costmodel::MicrobatchLoad& load,
                                  costmodel::Pass pass);

  /// Runs whose passes differ in their tokens alone.
  class TokenPasses {
   public:
    /// Of a run's tokens: the parts that depend on all of them, and those that depend on the scored rows alone (the
    /// head).
    TokenPass of(std::int64_t tokens, std::int64_t scored);

   private:
    friend class RunPrices;
    TokenPass priced(const costmodel::StageShape& stage, const costmodel::MicrobatchLoad& load) const;

    const RunPrices* prices_ = nullptr;
    costmodel::StageShape stage_;
    costmodel::AdapterShape adapter_;
    costmodel::AdapterKernels kernels_ = costmodel::AdapterKernels::separate;
    costmodel::Pass pass_ = costmodel::Pass::forward;
    std::unordered_map<std::int64_t, TokenPass> by_tokens_, by_scored_;
  };
  /// `load`: any of the runs. Stays where it is.
  TokenPasses& token_passes(const costmodel::StageShape& stage, const costmodel::MicrobatchLoad& load,
                            costmodel::Pass pass);

 private:
  /// Everything that a task's shared calls depend on.
  struct Task {
    costmodel::StageShape stage;
    costmodel::MicrobatchLoad load;
    costmodel::Pass pass = costmodel::Pass::forward;
    bool operator==(const Task&) const = default;
  };
  SharedCalls priced(const Task& task) const;

  const costmodel::CostModel& cost_;
  const costmodel::BackboneShape& backbone_;
  std::deque<TokenPasses> passes_;
  std::unordered_multimap<std::size_t, std::pair<Task, SharedCalls>> calls_;  // by hash
};

}  // namespace braid::planner
