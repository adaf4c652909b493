#include "planner/lobra/lobra.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "planner/dispatch/length_ranges.h"
#include "planner/lobra/configurations.h"
#include "planner/lobra/deployment_model.h"
#include "planner/milp/exchange.h"
#include "planner/plan/head_tail_groups.h"

namespace braid::planner {
namespace {

/// Deployments that are dispatched to with real steps, those of them that are proposed, and all that are looked at.
constexpr std::size_t kDispatched = 12, kProposed = 4;
constexpr std::int64_t kMostLookedAt = 400'000;
constexpr double kFarSlower = 1.15;
/// Global batches of each task that the expected lengths are told from (LobRA appendix: a hundred), and with which
/// deployments are tried.
constexpr std::int64_t kSampledBatches = 100, kTriedSteps = 8;
/// Steps that deployments are searched for as they are, too, with so small a share of the effort.
constexpr std::size_t kRealSteps = 4;
constexpr std::int64_t kRealShare = 8;

/// Of the program of a deployment.
constexpr milp::Limits kDeploymentLimits{.nodes = 200, .seconds = 120, .gap = 1e-3};

using Lengths = std::vector<std::int64_t>;

class Proposing {
 public:
  Proposing(const ProposalInput& input, const LobraRules& rules) : input_(input), rules_(rules) { collect_lengths(); }

  std::vector<Arrangement> run() {
    const std::vector<ReplicaKind> kinds = replica_kinds(
        input_, {interval_, longest_, most_step_tokens(), !rules_.one_by_one, rules_.kernels, rules_.doubled},
        rules_.recompute);
    std::vector<Configuration> configurations;
    for (const ReplicaKind& kind : kinds) configurations.push_back(kind.configuration);
    const ExpectedLoads loads = expected_loads();
    std::vector<std::size_t> all(kinds.size()), plain;
    std::iota(all.begin(), all.end(), std::size_t{0});
    for (const std::size_t k : all) {
      if (input_.may_recompute() && !recomputes({kinds[k].shape})) plain.push_back(k);
    }
    std::vector<std::size_t> worth = worth_of(all, configurations, loads);
    const std::vector<std::size_t> searched = places_in(worth, worth);
    // What recomputes looks better than it is where it is dispatched to: deployments without are found, too.
    const std::vector<std::size_t> spared = places_in(worth_of(plain, configurations, loads), worth);
    std::vector<Configuration> candidates;
    for (const std::size_t place : worth) candidates.push_back(configurations[place]);
    FoundDeployments found = rules_.unlike_replicas ? find_among(searched, candidates, loads, kMostLookedAt)
                                                    : like_deployments(candidates, loads);
    if (rules_.unlike_replicas && !found.best.empty()) program(candidates, loads, found);
    // What real steps are dispatched to the fastest need not be the fastest in expectation.
    if (rules_.unlike_replicas && !given_) {
      add_new(like_deployments(candidates, loads), found.best);
      add_new(find_among(searched, candidates, real_loads(), kMostLookedAt / kRealShare), found.best);
      if (!spared.empty()) add_new(find_among(spared, candidates, loads, kMostLookedAt / kRealShare), found.best);
    }
    std::vector<std::pair<double, Arrangement>> proposals;
    for (const DeploymentChoice& choice : found.best) {
      Arrangement arrangement = arrangement_of(choice, worth, kinds);
      arrangement.truncated = truncated_;
      const double seconds = dispatched_seconds(*arrangement.fixed.dispatch);
      if (!input_.silent) explain(found, choice, seconds, worth.size(), kinds.size(), arrangement);
      proposals.emplace_back(seconds, std::move(arrangement));
    }
    std::stable_sort(proposals.begin(), proposals.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Arrangement> arrangements;
    std::size_t like = 0, plains = 0;
    for (std::size_t i = 0; i < proposals.size(); ++i) {
      // What would be proposed were they the only ones, but for what is far slower: unlike replicas lose nothing, nor
      // does a choice of recomputation.
      const bool is_like = proposals[i].second.fixed.dispatch->speeds.size() == 1;
      const bool is_plain = !plain.empty() && !recomputes(proposals[i].second.fixed.deployment);
      if (i >= kProposed && proposals[i].first > kFarSlower * proposals[0].first) break;
      if (i >= kProposed && !(is_like && like < kProposed) && !(is_plain && plains < kProposed)) continue;
      like += is_like ? 1 : 0;
      plains += is_plain ? 1 : 0;
      if (rules_.bins) {
        add_in_bins(std::move(proposals[i].second), arrangements);
      } else {
        arrangements.push_back(std::move(proposals[i].second));
      }
    }
    return arrangements;
  }

 private:
  std::int64_t gpus() const { return input_.cluster.gpus(); }

  /// Of the samples of each task's first global batches, step by step.
  void collect_lengths() {
    for (std::size_t t = 0; t < input_.workload.tasks.size(); ++t) {
      const auto task = static_cast<TaskIndex>(t);
      std::vector<Lengths>& steps = lengths_.emplace_back();
      const std::int64_t batches = std::min(kSampledBatches, input_.samples.batches_per_epoch(task));
      for (std::int64_t batch = 0; batch < batches; ++batch) {
        Lengths& lengths = steps.emplace_back();
        for (const workload::SampleRef& sample : input_.samples.global_batch(task, batch))
          lengths.push_back(sample.tokens);
      }
      for (const workload::SampleSize& size : input_.samples.sizes(task)) longest_ = std::max(longest_, size.tokens);
    }
    constexpr std::int64_t kUsual = 256, kUnit = 16;
    interval_ = rules_.interval;
    if (interval_ == 0) interval_ = std::min(kUsual, (longest_ + kUnit * kUnit - 1) / (kUnit * kUnit) * kUnit);
  }

  /// Of the tasks that take their steps together: all, or one at a time.
  std::vector<std::vector<std::size_t>> together() const {
    std::vector<std::vector<std::size_t>> groups;
    for (std::size_t t = 0; t < lengths_.size(); ++t) {
      if (groups.empty() || rules_.one_by_one) groups.emplace_back();
      groups.back().push_back(t);
    }
    return groups;
  }

  /// Padded to the ends of the ranges that all sampled steps together have.
  ExpectedLoads expected_loads() const {
    ExpectedLoads loads;
    for (const std::vector<std::size_t>& tasks : together()) {
      const LengthRanges ranges = ranges_of(tasks);
      ExpectedLoad& load = loads.emplace_back(interval_of(ranges.ends.back(), interval_) + 1, 0.0);
      for (const std::size_t task : tasks) {
        const double each = 1 / static_cast<double>(lengths_[task].size());
        for (const Lengths& step : lengths_[task]) {
          for (const std::int64_t length : step) load[interval_of(ranges.ends[ranges.of(length)], interval_)] += each;
        }
      }
      // Something must hold the longest sample, though it may be none of the sampled.
      const std::size_t last = interval_of(longest_, interval_);
      if (load.size() <= last) load.resize(last + 1, 0.0);
      load[last] = std::max(load[last], kRare);
    }
    return loads;
  }
  /// Of the first steps, each by itself: what a step has few of, it has none of or one.
  ExpectedLoads real_loads() const {
    const std::vector<std::vector<std::size_t>> groups = together();
    ExpectedLoads loads;
    for (const std::vector<std::size_t>& tasks : groups) {
      for (std::size_t step = 0; step < std::max<std::size_t>(1, kRealSteps / groups.size()); ++step) {
        const Lengths lengths = lengths_in(step, tasks);
        const LengthRanges ranges = best_ranges(lengths, interval_, rules_.ranges);
        const std::size_t last = interval_of(longest_, interval_);
        ExpectedLoad& load = loads.emplace_back(last + 1, 0.0);
        for (const std::int64_t length : lengths) load[interval_of(ranges.ends[ranges.of(length)], interval_)] += 1;
        load[last] = std::max(load[last], kRare);
      }
    }
    return loads;
  }

  Lengths lengths_in(std::size_t step, const std::vector<std::size_t>& tasks) const {
    Lengths lengths;
    for (const std::size_t task : tasks) {
      const Lengths& drawn = lengths_[task][step % lengths_[task].size()];
      lengths.insert(lengths.end(), drawn.begin(), drawn.end());
    }
    return lengths;
  }
  static constexpr double kRare = 1e-3;  // sequences a step

  /// Of tasks that take their steps together, in whole intervals.
  std::int64_t most_step_tokens() const {
    std::int64_t most = 0;
    for (const std::vector<std::size_t>& tasks : together()) {
      std::int64_t sum = 0;
      for (const std::size_t task : tasks) {
        std::int64_t largest = 0;
        for (const Lengths& step : lengths_[task]) {
          std::int64_t tokens = 0;
          for (const std::int64_t length : step)
            tokens += static_cast<std::int64_t>(interval_of(length, interval_) + 1) * interval_;
          largest = std::max(largest, tokens);
        }
        sum += largest;
      }
      most = std::max(most, sum);
    }
    return most;
  }

  LengthRanges ranges_of(const std::vector<std::size_t>& tasks) const {
    Lengths all;
    for (const std::size_t task : tasks) {
      for (const Lengths& step : lengths_[task]) all.insert(all.end(), step.begin(), step.end());
    }
    return best_ranges(all, interval_, rules_.ranges);
  }

  /// The deployment as a mixed-integer program, where it is to be written or solved, or a solution is given.
  void program(std::span<const Configuration> candidates, const ExpectedLoads& loads, FoundDeployments& found) {
    if (!rules_.solved && !input_.models) return;
    const milp::Model model = deployment_model(candidates, gpus(), loads, found.best.front().seconds);
    if (input_.models) {
      input_.models->write(model);
      if (const auto values = input_.models->values_for(model)) return take(*values, model, candidates, loads, found);
    }
    if (!rules_.solved) return;
    const DeploymentChoice& first = found.best.front();
    const FractionalDispatch start = fractional_dispatch(candidates, gpus(), first.replicas, loads);
    const milp::Solution solved = milp::solve(model, kDeploymentLimits, start.values);
    truncated_ = solved.ended == milp::Ended::seconds;
    if (!solved.found()) return;
    const double searched = start.seconds;
    DeploymentChoice choice = deployment_of(solved.values, candidates, gpus(), model);
    found.bound = std::max(found.bound, std::min(solved.bound, choice.seconds));
    solver_ = fmt::format(
        "as a mixed-integer program the deployment takes {:.4g} s in expectation, {}; the one that the search found "
        "first takes {:.4g} s",
        choice.seconds,
        solved.ended == milp::Ended::proven
            ? std::string("the least, to a thousandth")
            : fmt::format("at most {:.1f} % over the least", 100 * (choice.seconds / found.bound - 1)),
        searched);
    std::erase_if(found.best, [&](const DeploymentChoice& one) { return one.replicas == choice.replicas; });
    found.best.insert(found.best.begin(), std::move(choice));
  }

  /// A given solution says how many replicas there are; how they are dispatched to is found anew.
  void take(std::span<const double> values, const milp::Model& model, std::span<const Configuration> candidates,
            const ExpectedLoads& loads, FoundDeployments& found) {
    const std::string file = input_.models->solution().string();
    DeploymentChoice choice = deployment_of(values, candidates, gpus(), model);
    std::int64_t taken = 0;
    for (std::size_t c = 0; c < candidates.size(); ++c) taken += choice.replicas[c] * candidates[c].gpus;
    if (taken > gpus())
      throw error("{}: its replicas have {} GPUs, and the cluster {}; give a solution of this model", file, taken,
                  gpus());
    if (taken == 0) throw error("{}: it has no replicas; give a solution of this model", file);
    choice.seconds = fractional_dispatch(candidates, gpus(), choice.replicas, loads).seconds;
    if (std::isinf(choice.seconds))
      throw error("{}: none of its replicas holds the longest samples, of {} tokens; give a solution of this model",
                  file, longest_);
    solver_ =
        fmt::format("the deployment is that of {}: {:.4g} s in expectation, where the search's first takes {:.4g} s",
                    file, choice.seconds, found.best.front().seconds);
    found.best = {std::move(choice)};
    given_ = true;
  }

  /// Of some kinds those that are worth deploying.
  std::vector<std::size_t> worth_of(std::span<const std::size_t> some, std::span<const Configuration> configurations,
                                    const ExpectedLoads& loads) const {
    std::vector<Configuration> mine;
    for (const std::size_t place : some) mine.push_back(configurations[place]);
    std::vector<std::size_t> worth;
    for (const std::size_t place : worth_deploying(mine, gpus(), loads)) worth.push_back(some[place]);
    return worth;
  }

  /// Where in `all` each is; what is not there yet is added.
  static std::vector<std::size_t> places_in(const std::vector<std::size_t>& some, std::vector<std::size_t>& all) {
    std::vector<std::size_t> places;
    for (const std::size_t one : some) {
      const auto at = std::find(all.begin(), all.end(), one);
      places.push_back(static_cast<std::size_t>(at - all.begin()));
      if (at == all.end()) all.push_back(one);
    }
    return places;
  }

  /// Deployments of some of the candidates, in numbers of all.
  FoundDeployments find_among(std::span<const std::size_t> some, std::span<const Configuration> candidates,
                              const ExpectedLoads& loads, std::int64_t most_looked_at) const {
    std::vector<Configuration> mine;
    for (const std::size_t place : some) mine.push_back(candidates[place]);
    FoundDeployments found = find_deployments(mine, gpus(), loads, kDispatched, most_looked_at);
    for (DeploymentChoice& choice : found.best) {
      std::vector<std::int64_t> replicas(candidates.size(), 0);
      for (std::size_t i = 0; i < some.size(); ++i) replicas[some[i]] = choice.replicas[i];
      choice.replicas = std::move(replicas);
    }
    return found;
  }

  /// As many replicas of one kind as there are GPUs for.
  FoundDeployments like_deployments(std::span<const Configuration> candidates, const ExpectedLoads& loads) const {
    FoundDeployments found;
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      DeploymentChoice choice{std::vector<std::int64_t>(candidates.size(), 0)};
      choice.replicas[c] = gpus() / candidates[c].gpus;
      choice.seconds = expected_seconds(candidates, choice.replicas, loads);
      ++found.looked_at;
      if (choice.replicas[c] > 0 && !std::isinf(choice.seconds)) found.best.push_back(std::move(choice));
    }
    std::stable_sort(found.best.begin(), found.best.end(),
                     [](const DeploymentChoice& a, const DeploymentChoice& b) { return a.seconds < b.seconds; });
    if (found.best.size() > kDispatched) found.best.resize(kDispatched);
    return found;
  }

  static void add_new(FoundDeployments others, std::vector<DeploymentChoice>& best) {
    for (DeploymentChoice& other : others.best) {
      const auto same = [&](const DeploymentChoice& one) { return one.replicas == other.replicas; };
      if (std::none_of(best.begin(), best.end(), same)) best.push_back(std::move(other));
    }
  }

  Arrangement arrangement_of(const DeploymentChoice& choice, std::span<const std::size_t> worth,
                             std::span<const ReplicaKind> kinds) const {
    Arrangement arrangement;
    FixedPlan& fixed = arrangement.fixed;
    LengthDispatch dispatch;
    dispatch.kind = rules_.dispatch;
    dispatch.interval = interval_;
    dispatch.ranges = rules_.ranges;
    if (rules_.fixed_ranges) {
      std::vector<std::size_t> all(lengths_.size());
      std::iota(all.begin(), all.end(), std::size_t{0});
      dispatch.fixed_ranges = ranges_of(all).ends;
      const auto last = static_cast<std::int64_t>(interval_of(longest_, interval_) + 1) * interval_;
      if (dispatch.fixed_ranges.back() < last) dispatch.fixed_ranges.push_back(last);
    }
    // The largest first, so that ranks of a replica lie on as few nodes as can be.
    std::vector<std::size_t> order(choice.replicas.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return kinds[worth[a]].configuration.gpus > kinds[worth[b]].configuration.gpus;
    });
    for (const std::size_t c : order) {
      const ReplicaKind& kind = kinds[worth[c]];
      if (choice.replicas[c] == 0) continue;
      dispatch.speeds.push_back(kind.configuration.speed);
      for (std::int64_t count = 0; count < choice.replicas[c]; ++count) {
        fixed.deployment.push_back(kind.shape);
        dispatch.speed_of.push_back(static_cast<std::int32_t>(dispatch.speeds.size()) - 1);
      }
    }
    fixed.dispatch = std::move(dispatch);
    for (const std::vector<std::size_t>& tasks : together()) {
      std::vector<TaskIndex>& htask = fixed.htasks.emplace_back();
      for (const std::size_t task : tasks) htask.push_back(static_cast<TaskIndex>(task));
    }
    std::vector<std::int32_t> bucket(fixed.htasks.size());
    std::iota(bucket.begin(), bucket.end(), 0);
    fixed.buckets = {bucket};
    if (rules_.one_by_one) queue_htasks(fixed);
    fixed.schedule.pipeline = PipelineTemplate::one_forward_one_backward;
    fixed.batching.padding = Padding::none;
    fixed.adapter_kernels = rules_.kernels;
    fixed.batching.microbatches = 1;
    arrangement.may_fuse = !rules_.one_by_one;
    const bool one_place = input_.overrides.tp && input_.overrides.pp;
    arrangement.may_differ = rules_.unlike_replicas && !one_place;
    return arrangement;
  }

  /// The same replicas with bins in the place of ranges.
  void add_in_bins(Arrangement ranges, std::vector<Arrangement>& arrangements) const {
    const LengthDispatch dispatch = *std::exchange(ranges.fixed.dispatch, std::nullopt);
    TokenBins::Unlike unlike{dispatch.interval, {}, dispatch.speeds, dispatch.speed_of};
    std::int64_t most = 0;
    for (std::size_t replica = 0; replica < dispatch.speed_of.size(); ++replica) {
      const std::vector<ReplicaSpeed::Full>& full = dispatch.speed(replica).full;
      const auto held = static_cast<std::int64_t>(full.size()) * dispatch.interval;
      unlike.capacities.push_back(std::max(full.front().rows * dispatch.interval, held));
      most = std::max(most, unlike.capacities.back());
    }
    const std::vector<double> means = mean_lengths(input_.samples, input_.workload.tasks.size());
    for (const std::int64_t groups : group_counts_of(static_cast<std::int64_t>(means.size()))) {
      for (const bool merges : {true, false}) {
        Arrangement arrangement = ranges;
        FixedPlan& fixed = arrangement.fixed;
        fixed.schedule.pipeline = PipelineTemplate::lora_1f1b;
        group_tasks(means, groups, fixed);
        fixed.batching.bins = {most, std::gcd(kTile, dispatch.interval), BinSearch::searched, merges, unlike};
        if (!input_.silent)
          arrangement.reasons.back() = fmt::format(
              "rows lie end to end in microbatches as large as each replica holds, those of {} groups of tasks without "
              "a flush between them",
              fixed.htasks.size());
        arrangements.push_back(std::move(arrangement));
      }
    }
  }
  static constexpr std::int64_t kTile = 64;  // tokens, of the kernels

  /// Of the slowest replica, in the mean over the first steps.
  double dispatched_seconds(const LengthDispatch& dispatch) const {
    std::vector<ReplicaSpeed> speeds;
    for (std::size_t replica = 0; replica < dispatch.speed_of.size(); ++replica)
      speeds.push_back(dispatch.speed(replica));
    double sum = 0;
    for (std::int64_t step = 0; step < kTriedSteps; ++step) {
      for (const std::vector<std::size_t>& tasks : together()) {
        const Lengths lengths = lengths_in(static_cast<std::size_t>(step), tasks);
        const LengthRanges ranges = best_ranges(lengths, interval_, rules_.ranges);
        std::vector<RangeLoad> loads;
        for (const std::int64_t end : ranges.ends) loads.push_back({interval_of(end, interval_), 0});
        for (const std::int64_t length : lengths) ++loads[ranges.of(length)].sequences;
        sum += dispatch_balanced(speeds, loads).seconds;
      }
    }
    return sum / kTriedSteps;
  }

  void explain(const FoundDeployments& found, const DeploymentChoice& choice, double seconds, std::size_t worth,
               std::size_t kinds, Arrangement& arrangement) const {
    arrangement.reasons.push_back(
        fmt::format("of {} kinds of replicas {} are worth deploying; {} deployments of them were looked at{}", kinds,
                    worth, found.looked_at, found.truncated ? ", and others not" : ""));
    if (found.bound > 0)
      arrangement.reasons.push_back(
          fmt::format("a step is expected to take {:.3g} s, {:.1f} % over the bound of fractional replicas; dispatched "
                      "over whole microbatches {:.3g} s",
                      choice.seconds, 100 * (choice.seconds / found.bound - 1), seconds));
    if (!solver_.empty()) arrangement.reasons.push_back(solver_);
    arrangement.reasons.push_back(
        fmt::format("rows are padded to the ends of up to {} length ranges, multiples of {} tokens, {}", rules_.ranges,
                    interval_, rules_.fixed_ranges ? "the same in every step" : "found for each step"));
  }

  const ProposalInput& input_;
  const LobraRules& rules_;
  std::vector<std::vector<Lengths>> lengths_;  // per task, per sampled step
  std::int64_t longest_ = 1;
  std::int64_t interval_ = 256;
  std::string solver_;  // what the program came to
  bool given_ = false;  // the deployment, as a solution of it
  bool truncated_ = false;
};

}  // namespace

std::vector<Arrangement> propose_lobra(const ProposalInput& input, const LobraRules& rules) {
  return Proposing(input, rules).run();
}

}  // namespace braid::planner
