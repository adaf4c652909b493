#include "planner/bound/lower_bound.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "planner/bound/best_rate.h"
#include "planner/bound/link_bound.h"
#include "planner/bound/pipeline_bound.h"
#include "planner/bound/step_demand.h"
#include "planner/plan/stash_budget.h"

// Passes of a stage take at least, over a step:
//
// - A call whose tokens are the microbatch's: with m microbatches of n_j tokens that sum to T, none above n,
//   Σ t(n_j) >= T · min over k <= n of t(k) / k (BestRates). A microbatch's tokens are at least what is counted of the
//   tasks in it, so that its calls take no less, and each task can be charged its own tokens at the rate of what may
//   come together.
// - A call of one task alone, or of the tasks of one microbatch together: likewise, over the task's own tokens or all.
// - Adapters side by side by MuxTune's Eq. 3 take at least the sum of utilization · time, and no less than the longest.
//   Utilization · time is what their work needs at the datasheet's rates; it never falls with more work either.
// - A launch of attention takes no less than its sequences' products, which add up, nor than what they move, which does
//   too; one of the two is charged for all tasks. Over the pieces of a sample neither is less than over the whole.
// - The host's launches of a pass are those of its calls; a pass takes what was measured, and the longer of its other
//   calls and of their launches.
// - Collectives of a stage's shards: each byte at the best rate of any message up to the largest. They are beside one
//   another on one link, so that a stage takes no less than all of them; where a pass is one microbatch's, nothing else
//   runs while they do, and a pass takes its calls and them.
// - Weights in shares (FSDP): a pass that computes for c seconds takes what gathered_seconds says, no less than if all
//   of c were the layers'. That is convex and of degree one in c and the gathers together, so that m passes take no
//   less than one would of their summed time and of m times the gathers; and it never falls with either. Every pass
//   gathers, however many tasks share it, so that m is at least the most of any task's.
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
// Sums of gradients over the replicas, one a task, step and run of layers, then the norms of those that clip, go one
// after another in a stage's sync stream: a step takes no less than all of them.
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
  return is_adapter(op) || op == Operator::split_gradient;
}

/// Attention is asked for by sequence, all else by token.
costmodel::MicrobatchLoad one_token(const costmodel::AdapterShape& adapter, AdapterKernels kernels) {
  return {1, 1, {{0, 1}}, {{adapter, 1}}, kernels};
}

class DeploymentBound {
 public:
  DeploymentBound(const BoundScope& scope, const WindowInput& input, const costmodel::CostModel& cost, BestRates& rates)
      : scope_(scope),
        input_(input),
        cost_(cost),
        rates_(rates),
        links_(scope.deployment, input.workload.backbone, cost, rates),
        demands_(scope, input, cost.storage().whole_logits) {
    const ReplicaShape& replica = scope.deployment.front();
    for (std::int32_t s = 0; s < replica.stages(); ++s) {
      stages_.push_back(stage_shapes(replica)[static_cast<std::size_t>(s)]);
      shortest_.push_back(stages_.back());
      // Of the model chunks the highest has the fewest recomputed layers.
      for (std::int32_t c = 0; replica.model_chunks > 1 && c < replica.model_chunks; ++c) {
        const std::int64_t layers = std::min<std::int64_t>(shortest_.back().layers, replica.chunk(s, c).count());
        shortest_.back() = run_of(stages_.back(), stages_.back().layers - layers, layers);
      }
    }
    for (const ReplicaShape& other : scope.deployment) BRAID_CHECK(other == replica, "replicas differ");
    least_rank_ = std::numeric_limits<std::int64_t>::max();
    for (const workload::Task& task : input.workload.tasks) {
      for (const costmodel::Module module : costmodel::kModules)
        if (task.adapter.has(module)) least_rank_ = std::min(least_rank_, task.adapter.rank_of(module));
    }
    if (scope.gathers_weights) gathers_ = links_.gathers();
  }

  LowerBound run() {
    if (demands_.tasks().empty()) return {0, "nothing to do", 0};
    if (scope_.microbatches > 0) return with(scope_.microbatches);
    LowerBound least{std::numeric_limits<double>::infinity(), "", 0};
    for (const auto& [first, last] :
         bounded_together(scope_.least_chunk > 0 || scope_.packs ? 1 : demands_.largest_batch())) {
      LowerBound bound = first == last ? with(first) : within(first, last);
      if (bound.step_seconds < least.step_seconds) least = std::move(bound);
    }
    return least;
  }

  /// With rows in any microbatches, as with packs.
  double work() {
    if (demands_.tasks().empty()) return 0;
    BRAID_CHECK(scope_.packs && stages_.size() == 1, "work of rows that may come together on one stage");
    std::vector<StepDemand> demands;
    for (std::size_t place = 0; place < demands_.tasks().size(); ++place) demands.push_back(demands_.of(place, 1));
    const PassSeconds whole = scope_.shares_microbatches ? together(demands) : add_up(bound_tasks(demands)).whole;
    return (1 - kRounding) * (whole.forward.front() + whole.backward.front());
  }

 private:
  /// Whether a microbatch's calls may be shared by several tasks, and how large they may then be.
  struct Company {
    bool shares = false;
    bool alike = false;  ///< all sequences of a microbatch are of one length
    Extent most;
    BestRates::Weight attention = BestRates::Weight::products;  ///< by which sequences of several lengths are charged
  };

  const workload::Task& task(std::size_t place) const {
    return input_.workload.tasks[static_cast<std::size_t>(demands_.tasks()[place])];
  }
  bool fuses_across_tasks() const { return scope_.shares_microbatches && scope_.kernels == AdapterKernels::fused; }

  LowerBound with(std::int64_t microbatches) {
    std::vector<StepDemand> demands;
    for (std::size_t place = 0; place < demands_.tasks().size(); ++place)
      demands.push_back(demands_.of(place, microbatches));
    return bound_of(demands);
  }

  LowerBound within(std::int64_t first, std::int64_t last) {
    std::vector<StepDemand> demands;
    for (std::size_t place = 0; place < demands_.tasks().size(); ++place)
      demands.push_back(demands_.within(place, first, last));
    return bound_of(demands);
  }

  LowerBound bound_of(const std::vector<StepDemand>& demands) {
    LowerBound bound = scope_.one_by_one && !scope_.shares_microbatches ? one_by_one(demands) : side_by_side(demands);
    bound.step_seconds *= 1 - kRounding;
    return bound;
  }

  /// Each task's step comes by itself: they add up.
  LowerBound one_by_one(const std::vector<StepDemand>& demands) {
    LowerBound sum, slowest;
    for (BoundTask& task : bound_tasks(demands)) {
      BoundProblem problem{{std::move(task)}, {}, scope_.drains};
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
    problem.tasks = bound_tasks(demands);
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

  /// The least that some run of the stage's layers is: going back, the backbone's lowest layer has less to do.
  StageShape shortest(std::size_t stage, Pass pass) const {
    StageShape shape = shortest_[stage];
    if (stage == 0 && pass == Pass::backward) shape.has_embedding = true;
    return shape;
  }

  std::vector<BoundTask> bound_tasks(const std::vector<StepDemand>& demands) {
    std::vector<BoundTask> bounds;
    std::vector<std::size_t> unlike;
    for (std::size_t place = 0; place < demands.size(); ++place) {
      const auto known = std::find_if(unlike.begin(), unlike.end(), [&](std::size_t other) {
        return demands[other] == demands[place] && task(other).adapter == task(place).adapter &&
               task(other).optimizer.max_grad_norm == task(place).optimizer.max_grad_norm;
      });
      if (known == unlike.end()) {
        unlike.push_back(place);
        bounds.push_back(bound_task(place, demands[place]));
      } else {
        bounds.push_back(bounds[*known]);
        bounds.back().name = task(place).name;
      }
    }
    return bounds;
  }

  BoundTask bound_task(std::size_t place, const StepDemand& demand) {
    BoundTask bound;
    bound.name = task(place).name;
    const Company alone{false, demand.alike(), demand.most, heavier({&demand, 1})};
    PassSeconds& whole = bound.batch.whole;
    PassSeconds& least = bound.batch.least;
    const double share = 1 / static_cast<double>(scope_.deployment.size());
    Work forward, backward, least_forward, least_backward;  // of this stage or of one like it
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (!like_the_one_below(s)) {
        forward = work(place, demand, stages_[s], Pass::forward, alone);
        backward = work(place, demand, stages_[s], Pass::backward, alone);
        least_forward = least_work(place, demand, shortest(s, Pass::forward), Pass::forward);
        least_backward = least_work(place, demand, shortest(s, Pass::backward), Pass::backward);
      }
      add_passes(forward, demand.microbatches, collectives(demand, s, Pass::forward, alone), Pass::forward, whole);
      add_passes(backward, demand.microbatches, collectives(demand, s, Pass::backward, alone), Pass::backward, whole);
      least.forward.push_back(least_pass(least_forward, demand, s, shortest(s, Pass::forward), Pass::forward));
      least.backward.push_back(least_pass(least_backward, demand, s, shortest(s, Pass::backward), Pass::backward));
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        if (model_chunks() > 1)
          bound.round_trip_seconds +=
              least_pass(least_work(place, demand, stages_[s], pass), demand, s, stages_[s], pass);
      }
      if (s + 1 < stages_.size()) {
        whole.message.push_back(share * model_chunks() * links_.messages(s, demand.tokens, alone.most.tokens));
        least.message.push_back(links_.least_message(s, demand.least.tokens));
      }
      bound.step_seconds.push_back(once(Operator::adamw, {}, parameters(place, s)));
      bound.sync_seconds.push_back(sync_seconds(place, s));
    }
    bound.finish_seconds = bound.sync_seconds.front() + bound.step_seconds.front();
    return bound;
  }

  /// What all tasks need of each stage and link where they may share microbatches.
  PassSeconds together(const std::vector<StepDemand>& demands) {
    Company company{true, true, {}, heavier(demands)};
    for (const StepDemand& demand : demands) {
      company.most.tokens += demand.most.tokens;
      company.most.scored += demand.most.scored;
      company.most.sequences += demand.most.sequences;
      const bool same = scope_.padding == Padding::longest || demand.shortest == demands.front().shortest;
      company.alike = company.alike && demand.alike() && same;
    }
    const double share = 1 / static_cast<double>(scope_.deployment.size());
    double passes = 0;
    for (const StepDemand& demand : demands) passes = std::max(passes, demand.microbatches);
    PassSeconds whole;
    Work forward, backward;  // of this stage or of one like it
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (!like_the_one_below(s)) forward = backward = {};
      double sent_forward = 0, sent_backward = 0, message = 0;
      for (std::size_t place = 0; place < demands.size(); ++place) {
        if (!like_the_one_below(s)) {
          forward += work(place, demands[place], stages_[s], Pass::forward, company);
          backward += work(place, demands[place], stages_[s], Pass::backward, company);
        }
        sent_forward += collectives(demands[place], s, Pass::forward, company);
        sent_backward += collectives(demands[place], s, Pass::backward, company);
        if (s + 1 < stages_.size())
          message += model_chunks() * links_.messages(s, demands[place].tokens, company.most.tokens);
      }
      add_passes(forward, passes, sent_forward, Pass::forward, whole);
      add_passes(backward, passes, sent_backward, Pass::backward, whole);
      if (s + 1 < stages_.size()) whole.message.push_back(share * message);
    }
    return whole;
  }

  /// Appends a replica's share of a step's passes on the next stage, forward first.
  void add_passes(const Work& work, double passes, double collectives, Pass pass, PassSeconds& whole) const {
    const double share = 1 / static_cast<double>(scope_.deployment.size());
    const double seconds = pass_seconds(work, passes, collectives, pass);
    if (pass == Pass::forward) {
      whole.forward.push_back(share * seconds);
      whole.collective.push_back(0);
      whole.waiting.push_back(0);
    } else {
      whole.backward.push_back(share * seconds);
    }
    whole.collective.back() += share * collectives;
    whole.waiting.back() += share * (seconds - work.seconds());
  }

  /// Of so many passes together, with their stage's collectives.
  double pass_seconds(const Work& work, double passes, double collectives, Pass pass) const {
    const double seconds = work.seconds() + (scope_.joins_htasks ? 0 : collectives);
    if (!scope_.gathers_weights) return seconds;
    const WeightGathers all{passes * gathers_.rest, passes * gathers_.layer, passes * gathers_.first,
                            gathers_.slowdown};
    return gathered_seconds(seconds, 0, stages_.front().layers, all, pass);
  }

  /// The calls of a microbatch with rows of this task alone. Fused kernels serve all tasks of a microbatch in calls of
  /// the largest rank: then the adapters are charged as of the least rank, and the frozen layers without the depth
  /// that adapters add.
  std::vector<OperatorCall> calls(const StageShape& stage, costmodel::MicrobatchLoad load, Pass pass) const {
    load.kernels = scope_.kernels;
    const costmodel::BackboneShape& backbone = input_.workload.backbone;
    if (!fuses_across_tasks()) return stage_operators(backbone, stage, load, pass, cost_.storage());
    const auto fused = [](const OperatorCall& call) { return is_fused_adapter(call.op); };
    load.tasks.front().adapter.rank = least_rank_;
    load.tasks.front().adapter.module_ranks = {};
    std::vector<OperatorCall> adapters = stage_operators(backbone, stage, load, pass, cost_.storage());
    std::erase_if(adapters, [&](const OperatorCall& call) { return !fused(call); });
    load.kernels = AdapterKernels::separate;
    std::vector<OperatorCall> all = stage_operators(backbone, stage, load, pass, cost_.storage());
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
    if (!company.alike) return attention_seconds(call, demand, company.attention);
    double seconds = 0;
    for (const auto& [length, sequences] : demand.sequences) {
      call.tokens = call.context = length;
      seconds += sequences * rates_.seconds(call, BestRates::Unit::sequences, company.most.sequences);
    }
    return share_of_scores() * seconds;
  }
  double attention_seconds(OperatorCall call, const StepDemand& demand, BestRates::Weight weight) {
    double seconds = 0;
    for (const auto& [length, sequences] : demand.sequences) {
      call.tokens = call.context = length;
      seconds += sequences * rates_.seconds(call, BestRates::Unit::sequences, 1, weight);
    }
    return share_of_scores() * seconds;
  }
  /// Of a whole sequence's: eager attention of chunks spares all scores of later chunks, which comes to no more than
  /// half. FlashAttention has spared them already.
  double share_of_scores() const {
    return scope_.least_chunk > 0 && cost_.storage().attention == costmodel::AttentionKind::eager ? 0.5 : 1;
  }

  /// Which of the two that add up over attention's sequences comes to more.
  BestRates::Weight heavier(std::span<const StepDemand> demands) {
    double products = 0, memory = 0;
    for (const OperatorCall& call : calls(stages_.front(), one_token({}, scope_.kernels), Pass::forward)) {
      if (call.op != Operator::attention) continue;
      for (const StepDemand& demand : demands) {
        products += attention_seconds(call, demand, BestRates::Weight::products);
        memory += attention_seconds(call, demand, BestRates::Weight::memory);
      }
    }
    return memory > products ? BestRates::Weight::memory : BestRates::Weight::products;
  }

  costmodel::MicrobatchLoad least_load(const StepDemand& demand) const {
    costmodel::MicrobatchLoad load;
    load.tokens = demand.least.tokens;
    load.scored = demand.least.scored;
    // Sequences of several lengths go side by side: no less than the longest of them.
    if (demand.shortest > 0)
      load.sequences.assign(demand.alike() ? static_cast<std::size_t>(demand.least.sequences) : 1,
                            {0, demand.shortest});
    return load;
  }

  Work least_work(std::size_t place, const StepDemand& demand, const StageShape& stage, Pass pass) const {
    costmodel::MicrobatchLoad load = least_load(demand);
    load.tasks = {{task(place).adapter, load.tokens}};
    Work work;
    for (const OperatorCall& call : calls(stage, load, pass)) {
      const costmodel::CallPrice price = cost_.price(call);
      seconds_of(call, price, work) += price.seconds;
      work.own_launches += price.launches * cost_.profile().launch_seconds;
    }
    return work;
  }

  /// A pass of that work on some layers of a stage.
  double least_pass(const Work& work, const StepDemand& demand, std::size_t stage, const StageShape& layers,
                    Pass pass) const {
    return pass_seconds(work, 1, links_.least_collectives(stage, layers, pass, least_load(demand)), pass);
  }

  double once(Operator op, const costmodel::OperatorShape& shape, std::int64_t amount) const {
    return amount > 0 ? cost_.estimate({op, Pass::forward, shape, amount}).seconds : 0;
  }
  std::int64_t layer_parameters(std::size_t place) const {
    return task(place).adapter.layer_parameters(input_.workload.backbone);
  }
  std::int64_t parameters(std::size_t place, std::size_t stage) const {
    return stages_[stage].layers * layer_parameters(place);
  }

  /// A task's gradients of the stage's layers are summed, then squared where it clips.
  double sync_seconds(std::size_t place, std::size_t stage) const {
    const double sums = links_.gradient_sums(stage, layer_parameters(place));
    const bool clips = task(place).optimizer.max_grad_norm > 0;
    return sums + (clips ? once(Operator::squared_norm, {}, parameters(place, stage)) : 0);
  }

  double collectives(const StepDemand& demand, std::size_t stage, Pass pass, const Company& company) {
    return links_.collectives(stage, stages_[stage], pass, demand, company.most);
  }

  const BoundScope& scope_;
  const WindowInput& input_;
  const costmodel::CostModel& cost_;
  BestRates& rates_;
  LinkBound links_;
  StepDemands demands_;
  std::vector<StageShape> stages_;    // of any replica
  std::vector<StageShape> shortest_;  // of each stage's runs of layers
  WeightGathers gathers_;
  std::int64_t least_rank_ = 0;
};

}  // namespace

std::vector<std::pair<std::int64_t, std::int64_t>> bounded_together(std::int64_t most) {
  constexpr std::int64_t kEach = 256, kParts = 32;
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  for (std::int64_t first = 1; first <= most; first = runs.back().second + 1)
    runs.emplace_back(first, first < kEach ? first : std::min(most, first + first / kParts));
  return runs;
}

LowerBound lower_bound(const BoundScope& scope, const WindowInput& input, const costmodel::CostModel& cost) {
  BestRates rates(cost);
  return lower_bound(scope, input, cost, rates);
}

LowerBound lower_bound(const BoundScope& scope, const WindowInput& input, const costmodel::CostModel& cost,
                       BestRates& rates) {
  BRAID_CHECK(!scope.deployment.empty(), "a deployment of no replicas");
  return DeploymentBound(scope, input, cost, rates).run();
}

double work_bound(const BoundScope& scope, const WindowInput& input, const costmodel::CostModel& cost,
                  BestRates& rates) {
  return DeploymentBound(scope, input, cost, rates).work();
}

}  // namespace braid::planner
