#pragma once

#include <deque>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "costmodel/profile/cost_model.h"
#include "costmodel/work/operators.h"

namespace braid::planner {

/// Calls whose kernels may share launches: attention, and the adapters of one module group.
struct SharedCall {
  double seconds = 0, weighted = 0, launches = 0;
  costmodel::AttentionWork attention = {};
  double layers = 0;     ///< that attend
  bool device = false;   ///< launched from a host, beside it
  bool attends = false;  ///< else an adapter
};

/// What of a pass depends on nothing but tokens: seconds, and what the host needs to launch it.
struct TokenPass {
  double seconds = 0, device = 0, host = 0;

  void add(const TokenPass& other, double times) {
    seconds += times * other.seconds;
    device += times * other.device;
    host += times * other.host;
  }
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

  /// A part of a pass by its tokens. These are rounded up to nine binary digits, by less than 1/256, so that few prices
  /// serve any number of runs; never past a border of a tile of 2^k rows while they are fewer than 2^(k + 9).
  class TokenPrices {
   public:
    const TokenPass& of(std::int64_t tokens);

   private:
    friend class RunPrices;
    enum class Piece { body, further_layer, head };

    bool holds(const costmodel::OperatorCall& call) const;
    TokenPass priced(const costmodel::MicrobatchLoad& load) const;

    const RunPrices* prices_ = nullptr;
    Piece piece_ = Piece::body;
    costmodel::StageShape stage_;
    costmodel::AdapterShape adapter_;
    costmodel::AdapterKernels kernels_ = costmodel::AdapterKernels::separate;
    costmodel::Pass pass_ = costmodel::Pass::forward;
    std::vector<std::optional<TokenPass>> known_;  // by place among rounded counts
  };

  /// Runs whose passes differ in their tokens alone: a stage's first layer with all that is not in layers; as many
  /// further layers, which are alike but for those that are recomputed; and the head, which may take the scored rows
  /// alone.
  struct TokenPasses {
    TokenPrices *body = nullptr, *further_layer = nullptr, *recomputed_layer = nullptr, *head = nullptr;
    double further_layers = 0, recomputed_layers = 0;  ///< 0: the pointer may be nullptr
    bool scores_all = false;

    TokenPass of(std::int64_t tokens, std::int64_t scored) const;
  };
  /// `load`: any of the runs.
  TokenPasses token_passes(const costmodel::StageShape& stage, const costmodel::MicrobatchLoad& load,
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
  /// Stays where it is.
  TokenPrices& token_prices(TokenPrices::Piece piece, const costmodel::StageShape& stage,
                            const costmodel::AdapterShape& adapter, costmodel::AdapterKernels kernels,
                            costmodel::Pass pass);

  const costmodel::CostModel& cost_;
  const costmodel::BackboneShape& backbone_;
  std::deque<TokenPrices> token_prices_;
  std::unordered_multimap<std::size_t, std::pair<Task, SharedCalls>> calls_;  // by hash
};

}  // namespace braid::planner
