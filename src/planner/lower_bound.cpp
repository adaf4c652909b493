#include "planner/lower_bound.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "planner/best_rate.h"
#include "planner/pipeline_bound.h"
#include "planner/step_demand.h"

// Passes of a stage take at least, over a step:
//
// - A call whose tokens are the microbatch's: with m microbatches of n_j tokens that sum to T, none above n,
//   Σ t(n_j) >= T · min over k <= n of t(k) / k (BestRates). A microbatch's tokens are at least what is counted of the
//   tasks in it, so that its calls take no less, and each task can be charged its own tokens at the rate of what may
//   come together.
// - A call of one task alone, or of the tasks of one microbatch together: likewise, over the task's own tokens or all.
// - Calls side by side by MuxTune's Eq. 3 take at least the sum of utilization · time, and no less than the longest.
//   Utilization · time is what their work needs at the datasheet's rates; it never falls with more work either, and
//   over the pieces of a sample attention's is no less than over the whole.
// - The host's launches of a pass are those of its calls; a pass takes what was measured, and the longer of its other
//   calls and of their launches.
//
// A task's cycle holds the microbatches that hold rows of it, which take no less than its own rows would alone. Each is
// charged the least that the whole of it may take: once with tasks together for what all of them need of a stage, once
// alone for the cycle.
//
// Where stages are interleaved, a stage does all of its model chunks' work, and its link carries a message for each;
// but before a stage's first pass and after its last, a microbatch goes only through one model chunk of each stage
// below, and between its last forward and its first backward on a stage only through one of each stage above. So a
// microbatch's least is that of the shortest model chunk; the round trip through all of them is a term of its own.
//
// Of R like replicas some one does at least an R-th of any sum, and has a microbatch.
namespace braid::planner {
namespace {

using costmodel::AdapterKernels;
using costmodel::Operator;
using costmodel::OperatorCall;
using costmodel::Pass;
using costmodel::StageShape;

/// Durations are whole nanoseconds: of what takes half a microsecond and more, as all passes and messages do, rounding
/// takes at most this share.
constexpr double kRounding = 1e-3;

/// What passes take at least.
struct Work {
  double measured = 0;
  double derived = 0;
  double own_launches = 0;     ///< the host's time for those that no other task shares
  double shared_launches = 0;  ///< and for those that the tasks of a microbatch may have in common

  Work& operator+=(const Work& other) {
    measured += other.measured;
    derived += other.derived;
    own_launches += other.own_launches;
    shared_launches = std::max(shared_launches, other.shared_launches);
    return *this;
  }
  double seconds() const { return measured + std::max(derived, own_launches + shared_launches); }
};

/// A call of one task, whoever shares the microbatch.
bool is_own(Operator op) {
  return op == Operator::lora || op == Operator::lora_dropout || op == Operator::split_gradient;
}

/// Attention is asked for by sequence, all else by token.
costmodel::MicrobatchLoad one_token(const costmodel::AdapterShape& adapter, AdapterKernels kernels) {
  return {1, 1, {{0, 1}}, {{adapter, 1}}, kernels};
}

class DeploymentBound {
 public:
  DeploymentBound(const BoundScope& scope, const WindowInput& input, const costmodel::CostModel& cost, BestRates& rates)
      : scope_(scope), input_(input), cost_(cost), rates_(rates), demands_(scope, input) {
    const ReplicaShape& replica = scope.deployment.front();
    for (std::int32_t s = 0; s < replica.stages(); ++s) {
      stages_.push_back({replica.layers_of(s), s == 0, s + 1 == replica.stages(), replica.tp});
      shortest_.push_back(stages_.back());
      for (std::int32_t c = 0; replica.model_chunks > 1 && c < replica.model_chunks; ++c)
        shortest_.back() = {std::min<std::int64_t>(shortest_.back().layers, replica.chunk(s, c).count()), false, false,
                            replica.tp};
    }
    for (const ReplicaShape& other : scope.deployment)
      BRAID_CHECK(
          other.tp == replica.tp && other.layers == replica.layers && other.model_chunks == replica.model_chunks,
          "replicas differ");
    least_rank_ = input.workload.tasks.front().adapter.rank;
    for (const workload::Task& task : input.workload.tasks) least_rank_ = std::min(least_rank_, task.adapter.rank);
  }

  LowerBound run() {
    if (demands_.tasks().empty()) return {0, "nothing to do", 0};
    if (scope_.microbatches > 0) return with(scope_.microbatches);
    LowerBound least = with(1);
    const std::int64_t most = scope_.least_chunk > 0 || scope_.packs ? 1 : demands_.largest_batch();
    for (std::int64_t microbatches = 2; microbatches <= most; ++microbatches) {
      LowerBound bound = with(microbatches);
      if (bound.step_seconds < least.step_seconds) least = std::move(bound);
    }
    return least;
  }

 private:
  /// Whether a microbatch's calls may be shared by several tasks, and how large they may then be.
  struct Company {
    bool shares = false;
    bool alike = false;  ///< all sequences of a microbatch are of one length
    Extent most;
  };

  const workload::Task& task(std::size_t place) const {
    return input_.workload.tasks[static_cast<std::size_t>(demands_.tasks()[place])];
  }
  bool fuses_across_tasks() const { return scope_.shares_microbatches && scope_.kernels == AdapterKernels::fused; }

  LowerBound with(std::int64_t microbatches) {
    std::vector<StepDemand> demands;
    for (std::size_t place = 0; place < demands_.tasks().size(); ++place)
      demands.push_back(demands_.of(place, microbatches));
    LowerBound bound = scope_.one_by_one && !scope_.shares_microbatches ? one_by_one(demands) : side_by_side(demands);
    bound.step_seconds *= 1 - kRounding;
    return bound;
  }

  /// Each task's step comes by itself: they add up.
  LowerBound one_by_one(const std::vector<StepDemand>& demands) {
    LowerBound sum, slowest;
    for (std::size_t place = 0; place < demands.size(); ++place) {
      BoundProblem problem{{bound_task(place, demands[place])}, {}, scope_.drains};
      problem.together = problem.tasks.front().batch;
      const LowerBound bound = pipeline_bound(problem);
      sum.step_seconds += bound.step_seconds;
      if (bound.step_seconds > slowest.step_seconds) slowest = bound;
    }
    sum.binds = slowest.binds;
    return sum;
  }

  LowerBound side_by_side(const std::vector<StepDemand>& demands) {
    BoundProblem problem;
    for (std::size_t place = 0; place < demands.size(); ++place)
      problem.tasks.push_back(bound_task(place, demands[place]));
    problem.together = add_up(problem.tasks);
    if (scope_.shares_microbatches) problem.together.whole = together(demands);
    // Where hTasks of several tasks are queued, each drains: together they take no less than if only the last did.
    problem.drains = scope_.drains;
    return pipeline_bound(problem);
  }

  bool like_the_one_below(std::size_t stage) const {
    return stage > 0 && stages_[stage] == stages_[stage - 1] && shortest_[stage] == shortest_[stage - 1];
  }
  double model_chunks() const { return scope_.deployment.front().model_chunks; }

  BoundTask bound_task(std::size_t place, const StepDemand& demand) {
    BoundTask bound;
    bound.name = task(place).name;
    const Company alone{false, demand.alike(), demand.most};
    PassSeconds& whole = bound.batch.whole;
    PassSeconds& least = bound.batch.least;
    const double share = 1 / static_cast<double>(scope_.deployment.size());
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (like_the_one_below(s)) {
        for (std::vector<double>* seconds : {&whole.forward, &whole.backward, &least.forward, &least.backward})
          seconds->push_back(seconds->back());
      } else {
        whole.forward.push_back(share * work(place, demand, stages_[s], Pass::forward, alone).seconds());
        whole.backward.push_back(share * work(place, demand, stages_[s], Pass::backward, alone).seconds());
        least.forward.push_back(least_pass(place, demand, shortest_[s], Pass::forward));
        least.backward.push_back(least_pass(place, demand, shortest_[s], Pass::backward));
      }
      if (model_chunks() > 1) {
        for (const Pass pass : {Pass::forward, Pass::backward})
          bound.round_trip_seconds += least_pass(place, demand, stages_[s], pass);
      }
      whole.collective.push_back(share * collectives(demand, s, alone));
      if (s + 1 < stages_.size()) {
        whole.message.push_back(share * model_chunks() * messages(demand, s, alone));
        least.message.push_back(least_message(s, demand.least.tokens));
      }
      bound.step_seconds.push_back(once(Operator::adamw, {}, parameters(place, s)));
    }
    bound.finish_seconds = finish_seconds(place) + bound.step_seconds.front();
    return bound;
  }

  /// What all tasks need of each stage and link where they may share microbatches.
  PassSeconds together(const std::vector<StepDemand>& demands) {
    Company company{true, true, {}};
    for (const StepDemand& demand : demands) {
      company.most.tokens += demand.most.tokens;
      company.most.scored += demand.most.scored;
      company.most.sequences += demand.most.sequences;
      const bool same = scope_.padding == Padding::longest || demand.shortest == demands.front().shortest;
      company.alike = company.alike && demand.alike() && same;
    }
    const double share = 1 / static_cast<double>(scope_.deployment.size());
    PassSeconds whole;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      Work forward, backward;
      double collective = 0, message = 0;
      for (std::size_t place = 0; place < demands.size(); ++place) {
        if (!like_the_one_below(s)) {
          forward += work(place, demands[place], stages_[s], Pass::forward, company);
          backward += work(place, demands[place], stages_[s], Pass::backward, company);
        }
        collective += collectives(demands[place], s, company);
        if (s + 1 < stages_.size()) message += model_chunks() * messages(demands[place], s, company);
      }
      whole.forward.push_back(like_the_one_below(s) ? whole.forward.back() : share * forward.seconds());
      whole.backward.push_back(like_the_one_below(s) ? whole.backward.back() : share * backward.seconds());
      whole.collective.push_back(share * collective);
      if (s + 1 < stages_.size()) whole.message.push_back(share * message);
    }
    return whole;
  }

  /// The calls of a microbatch with rows of this task alone. Fused kernels serve all tasks of a microbatch in calls of
  /// the rows' mean rank: then the adapters are charged as of the least rank, and the frozen layers without the depth
  /// that adapters add.
  std::vector<OperatorCall> calls(const StageShape& stage, costmodel::MicrobatchLoad load, Pass pass) const {
    load.kernels = scope_.kernels;
    const costmodel::BackboneShape& backbone = input_.workload.backbone;
    if (!fuses_across_tasks()) return stage_operators(backbone, stage, load, pass);
    const auto fused = [](const OperatorCall& call) {
      return call.op == Operator::fused_lora || call.op == Operator::fused_lora_dropout;
    };
    load.tasks.front().adapter.rank = least_rank_;
    std::vector<OperatorCall> adapters = stage_operators(backbone, stage, load, pass);
    std::erase_if(adapters, [&](const OperatorCall& call) { return !fused(call); });
    load.kernels = AdapterKernels::separate;
    std::vector<OperatorCall> all = stage_operators(backbone, stage, load, pass);
    std::erase_if(all, [](const OperatorCall& call) { return is_own(call.op); });
    all.insert(all.end(), adapters.begin(), adapters.end());
    return all;
  }

  /// Where calls side by side are in part measured, all their time stands against the host's launches.
  double& seconds_of(const OperatorCall& call, const costmodel::CallPrice& price, Work& work) const {
    const bool mixed = is_own(call.op) && scope_.shares_microbatches && scope_.kernels == AdapterKernels::side_by_side;
    return price.launches > 0 || mixed ? work.derived : work.measured;
  }

  /// The passes of a step's microbatches, as far as they are this task's.
  Work work(std::size_t place, const StepDemand& demand, const StageShape& stage, Pass pass, const Company& company) {
    Work work;
    for (const OperatorCall& call : calls(stage, one_token(task(place).adapter, scope_.kernels), pass)) {
      const bool scores = call.op == Operator::head_loss;
      if (scores && demand.scored == 0) continue;
      const costmodel::CallPrice price = cost_.price(call);
      seconds_of(call, price, work) += call.count * call_seconds(call, demand, company);
      const bool alone = is_own(call.op) && scope_.kernels != AdapterKernels::side_by_side;
      const double passes = scores ? demand.scored_microbatches : demand.microbatches;
      (alone || !company.shares ? work.own_launches : work.shared_launches) +=
          passes * price.launches * cost_.profile().launch_seconds;
    }
    return work;
  }

  /// Of one layer.
  double call_seconds(const OperatorCall& call, const StepDemand& demand, const Company& company) {
    if (call.op == Operator::attention) return attention_seconds(call, demand, company);
    const Extent& most = company.shares && !is_own(call.op) ? company.most : demand.most;
    if (call.op == Operator::head_loss)
      return demand.scored * rates_.seconds(call, BestRates::Unit::tokens, most.scored);
    const bool beside = company.shares && is_own(call.op) && scope_.kernels == AdapterKernels::side_by_side;
    return demand.tokens * rates_.seconds(call, BestRates::Unit::tokens, most.tokens,
                                          beside ? BestRates::Weight::utilized : BestRates::Weight::whole);
  }

  double attention_seconds(OperatorCall call, const StepDemand& demand, const Company& company) {
    double seconds = 0;
    for (const auto& [length, sequences] : demand.sequences) {
      call.tokens = call.context = length;
      seconds += sequences * (company.alike
                                  ? rates_.seconds(call, BestRates::Unit::sequences, company.most.sequences)
                                  : rates_.seconds(call, BestRates::Unit::sequences, 1, BestRates::Weight::utilized));
    }
    return seconds;
  }

  double least_pass(std::size_t place, const StepDemand& demand, const StageShape& stage, Pass pass) const {
    costmodel::MicrobatchLoad load;
    load.tokens = demand.least.tokens;
    load.scored = demand.least.scored;
    // Sequences of several lengths go side by side: no less than the longest of them.
    if (demand.shortest > 0)
      load.sequences.assign(demand.alike() ? static_cast<std::size_t>(demand.least.sequences) : 1,
                            {0, demand.shortest});
    load.tasks = {{task(place).adapter, load.tokens}};
    Work work;
    for (const OperatorCall& call : calls(stage, load, pass)) {
      const costmodel::CallPrice price = cost_.price(call);
      seconds_of(call, price, work) += price.seconds;
      work.own_launches += price.launches * cost_.profile().launch_seconds;
    }
    return work.seconds();
  }

  double once(Operator op, const costmodel::OperatorShape& shape, std::int64_t amount) const {
    return amount > 0 ? cost_.estimate({op, Pass::forward, shape, amount}).seconds : 0;
  }
  std::int64_t parameters(std::size_t place, std::size_t stage) const {
    return stages_[stage].layers * task(place).adapter.layer_parameters(input_.workload.backbone);
  }

  /// From the task's last backward on the first stage to its Step there: the gradients of the stage's layers are summed
  /// over all that hold them, then squared where the task clips, as lowering has it.
  double finish_seconds(std::size_t place) const {
    std::vector<std::int32_t> holders;
    for (std::size_t r = 0; r < scope_.deployment.size(); ++r) {
      for (const std::int32_t rank : ranks(r, 0)) holders.push_back(rank);
    }
    const auto sum_up = [&](std::span<const std::int32_t> members, Bytes bytes) {
      return members.size() > 1 ? once(Operator::all_reduce, cost_.group_shape(Operator::all_reduce, members), bytes)
                                : 0;
    };
    double seconds = sum_up(holders, static_cast<Bytes>(sizeof(float)) * parameters(place, 0));
    if (task(place).optimizer.max_grad_norm > 0) seconds += once(Operator::squared_norm, {}, parameters(place, 0));
    return seconds;
  }

  std::vector<std::int32_t> ranks(std::size_t replica, std::size_t stage) const {
    const std::int32_t tp = scope_.deployment.front().tp;
    std::vector<std::int32_t> ranks;
    for (std::int32_t t = 0; t < tp; ++t)
      ranks.push_back(static_cast<std::int32_t>(replica * stages_.size() + stage) * tp + t);
    return ranks;
  }

  /// The shapes that a collective has on the replicas: they may lie over nodes in different ways.
  template <typename Ranks>
  std::set<costmodel::OperatorShape> shapes(Operator op, const Ranks& ranks_of) const {
    std::set<costmodel::OperatorShape> shapes;
    for (std::size_t replica = 0; replica < scope_.deployment.size(); ++replica)
      shapes.insert(cost_.group_shape(op, ranks_of(replica)));
    return shapes;
  }
  std::set<costmodel::OperatorShape> link_shapes(std::size_t link) const {
    return shapes(Operator::send_recv, [&](std::size_t replica) {
      return std::array{ranks(replica, link).front(), ranks(replica, link + 1).front()};
    });
  }
  Bytes bytes_a_token() const {
    return costmodel::message_bytes_per_token(input_.workload.backbone, cost_.profile().storage());
  }

  /// Over the best of the replicas' links.
  double least_rate(OperatorCall call, const std::set<costmodel::OperatorShape>& shapes, std::int64_t most) {
    double least = std::numeric_limits<double>::infinity();
    for (const costmodel::OperatorShape& shape : shapes) {
      call.shape = shape;
      least = std::min(least, rates_.seconds(call, BestRates::Unit::tokens, most));
    }
    return least;
  }

  double messages(const StepDemand& demand, std::size_t link, const Company& company) {
    const double bytes = demand.tokens * static_cast<double>(bytes_a_token());
    return bytes * least_rate({Operator::send_recv}, link_shapes(link), company.most.tokens * bytes_a_token());
  }
  double least_message(std::size_t link, std::int64_t tokens) const {
    double least = std::numeric_limits<double>::infinity();
    for (const costmodel::OperatorShape& shape : link_shapes(link))
      least = std::min(least, once(Operator::send_recv, shape, tokens * bytes_a_token()));
    return least;
  }

  /// Those of the layers; the head's are left out.
  double collectives(const StepDemand& demand, std::size_t stage, const Company& company) {
    double seconds = 0;
    if (stages_[stage].tp == 1) return seconds;
    costmodel::MicrobatchLoad load;
    load.tokens = 1;
    const Bytes number = costmodel::bytes_of(cost_.profile().storage().activations);
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      for (OperatorCall call : stage_collectives(input_.workload.backbone, stages_[stage], load, pass, number)) {
        const auto groups = shapes(call.op, [&](std::size_t replica) { return ranks(replica, stage); });
        const std::int64_t bytes = call.tokens;
        seconds += call.count * demand.tokens * static_cast<double>(bytes) *
                   least_rate(call, groups, company.most.tokens * bytes);
      }
    }
    return seconds;
  }

  const BoundScope& scope_;
  const WindowInput& input_;
  const costmodel::CostModel& cost_;
  BestRates& rates_;
  StepDemands demands_;
  std::vector<StageShape> stages_;    // of any replica
  std::vector<StageShape> shortest_;  // of each stage's runs of layers
  std::int64_t least_rank_ = 0;
};

}  // namespace

LowerBound lower_bound(const BoundScope& scope, const WindowInput& input, const costmodel::CostModel& cost) {
  BestRates rates(cost);
  return lower_bound(scope, input, cost, rates);
}

LowerBound lower_bound(const BoundScope& scope, const WindowInput& input, const costmodel::CostModel& cost,
                       BestRates& rates) {
  BRAID_CHECK(!scope.deployment.empty(), "a deployment of no replicas");
  return DeploymentBound(scope, input, cost, rates).run();
}

}  // namespace braid::planner
