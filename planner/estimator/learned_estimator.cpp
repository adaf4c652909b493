#include "planner/estimator/learned_estimator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace braid::planner {
namespace {

using Counts = std::vector<std::int32_t>;

/// Where nothing is padded steps differ with their samples, and one of mean ones tells little.
bool tells_samples_apart(const FixedPlan& fixed) {
  return fixed.batching.padding == Padding::none;
}

}  // namespace

LearnedEstimator::LearnedEstimator(const PlanningInput& input, const PolicyChoice& choice, std::int32_t most_tasks,
                                   std::shared_ptr<Layouts> layouts)
    : StepEstimator(std::move(layouts)), input_(input), choice_(choice), bench_(input_, choice_) {
  const std::size_t kinds = input.workload.tasks.size();
  std::string why;
  const auto plan = [&](const Counts& counts, bool drawn) -> std::optional<Plan> {
    const CountedTasks tasks = counted_tasks(input_, counts, drawn);
    try {
      return make_plan(input_.of(tasks.workload, tasks.samples), choice);
    } catch (const Error& error) {
      why = error.what();
      return std::nullopt;
    }
  };
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    Counts counts(kinds, 0);
    counts[kind] = 1;
    alone_.push_back(plan(counts, false));
    if (alone_.back() && tells_samples_apart(alone_.back()->fixed)) alone_.back() = plan(counts, true);
    if (alone_.back()) learn_from(*alone_.back());
  }
  if (candidates_.empty()) throw error("{}", why);
  for (const Counts& counts : telling_sets(kinds, most_tasks)) {
    if (const std::optional<Plan> planned = plan(counts, false)) learn_from(*planned);
  }
  learned_ = candidates_.size();
  for (std::size_t c = 0; c < learned_; ++c) learn_splits(candidates_[c]);
  laid_out_.resize(candidates_.size());
}

/// Where memory is short a set may fit only when split as far as its samples go.
void LearnedEstimator::learn_splits(Candidate candidate) {
  for (const workload::Task& task : input_.workload.tasks) {
    candidate.microbatches = task.global_batch_size;
    if (std::find(candidates_.begin(), candidates_.end(), candidate) == candidates_.end())
      candidates_.push_back(candidate);
  }
}

void LearnedEstimator::learn_from(const Plan& plan) {
  std::vector<ReplicaShape> deployment = bench_.plain(plan.fixed.deployment);
  const Candidate learned{std::move(deployment), plan.fixed.batching.microbatches};
  if (std::find(candidates_.begin(), candidates_.end(), learned) == candidates_.end()) candidates_.push_back(learned);
}

PolicyInput LearnedEstimator::policy_input(const CountedTasks& tasks, const Candidate& candidate) {
  PolicyInput input{tasks.workload,       tasks.samples,          bench_.latency(), bench_.capacity(),
                    candidate.deployment, candidate.microbatches, choice_.options};
  input.silent = true;
  input.kinds = tasks.kinds;
  input.laid_out = &laid_out_[static_cast<std::size_t>(&candidate - candidates_.data())];
  return input;
}

std::optional<LearnedEstimator::Laid> LearnedEstimator::lay(const CountedTasks& tasks) {
  std::int64_t most = 1;
  for (const workload::Task& task : tasks.workload.tasks) most = std::max(most, task.global_batch_size);
  // Sketches are about right: of the best the fastest that fits memory is taken. Without any all are tried.
  std::optional<Laid> best;
  for (const Candidate* candidate : best_sketches(tasks, most)) {
    std::optional<Laid> laid = lay(tasks, *candidate);
    if (laid && (!best || laid->step.step_seconds < best->step.step_seconds)) best = std::move(laid);
  }
  if (best) return best;
  for (const auto& [sketched, candidate] : sketches(tasks, most)) {
    if (best && sketched > 0) break;
    std::optional<Laid> laid = lay(tasks, *candidate);
    if (laid && (!best || laid->step.step_seconds < best->step.step_seconds)) best = std::move(laid);
  }
  for (std::size_t c = learned_; c < candidates_.size() && !best; ++c) {
    if (candidates_[c].microbatches == most) best = lay(tasks, candidates_[c]);
  }
  return best;
}

std::optional<LearnedEstimator::Laid> LearnedEstimator::lay(const CountedTasks& tasks, const Candidate& candidate) {
  std::optional<planner::Candidate> found =
      bench_.glance(policy_input(tasks, candidate), Bench::Asked::rates, std::numeric_limits<Bytes>::max(), 1);
  if (!found) return std::nullopt;
  FixedPlan& fixed = found->arrangement.fixed;
  const StepEstimate step = estimate_of(fixed, found->prediction);
  return Laid{std::move(fixed), step};
}

std::vector<const LearnedEstimator::Candidate*> LearnedEstimator::best_sketches(const CountedTasks& tasks,
                                                                                std::int64_t most_samples) {
  // How far sketches may be off, and what rounding to nanoseconds may make of one.
  constexpr double kNear = 1.01, kRounding = 1.001;
  std::vector<std::pair<double, std::size_t>> sketched;
  double least = std::numeric_limits<double>::infinity();
  // A good one first spares most of the work on others.
  for (std::size_t i = 0; i < learned_; ++i) {
    const std::size_t place = i == 0 ? likely_ : i <= likely_ ? i - 1 : i;
    if (candidates_[place].microbatches > most_samples) continue;
    PolicyInput asked = policy_input(tasks, candidates_[place]);
    asked.sketch_limit = kRounding * kNear * least;
    const std::optional<double> seconds = bench_.sketch(asked);
    if (!seconds) return {};
    if (std::isinf(*seconds)) continue;
    sketched.emplace_back(*seconds, place);
    least = std::min(least, *seconds);
  }
  std::sort(sketched.begin(), sketched.end());
  std::vector<const Candidate*> best;
  for (const auto& [seconds, place] : sketched) {
    if (seconds <= kNear * least) best.push_back(&candidates_[place]);
  }
  if (!best.empty()) likely_ = sketched.front().second;
  return best;
}

std::vector<std::pair<double, const LearnedEstimator::Candidate*>> LearnedEstimator::sketches(
    const CountedTasks& tasks, std::int64_t most_samples) {
  std::vector<std::pair<double, const Candidate*>> sketched;
  for (const Candidate& candidate : std::span(candidates_).first(learned_)) {
    if (candidate.microbatches > most_samples) continue;
    const double seconds = bench_.sketch(policy_input(tasks, candidate)).value_or(0);
    if (!std::isinf(seconds)) sketched.emplace_back(seconds, &candidate);
  }
  std::stable_sort(sketched.begin(), sketched.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return sketched;
}

std::optional<StepEstimate> LearnedEstimator::estimate(std::span<const std::int32_t> counts) {
  const std::int32_t tasks = std::accumulate(counts.begin(), counts.end(), 0);
  BRAID_CHECK(counts.size() == kinds() && tasks > 0, "an estimate of {} tasks of {} kinds", tasks, counts.size());
  if (tasks == 1) {
    return estimate_of(only(counts));
  }
  const std::optional<Laid> laid = lay(counted_tasks(input_, counts, false));
  if (!laid) return std::nullopt;
  if (!tells_samples_apart(laid->fixed)) return laid->step;
  return estimate_of(laid->fixed, replay_of(laid->fixed, counts));
}

Prediction LearnedEstimator::replay_of(const FixedPlan& fixed, std::span<const std::int32_t> counts) {
  const CountedTasks drawn = counted_tasks(input_, counts, true);
  return predict(fixed, {drawn.workload, drawn.samples}, bench_.latency(), input_.judge);
}

double LearnedEstimator::replayed(std::span<const std::int32_t> counts) {
  if (std::accumulate(counts.begin(), counts.end(), 0) == 1 && only(counts))
    return replay_of(only(counts)->fixed, counts).step_seconds;
  const std::optional<Laid> laid = lay(counted_tasks(input_, counts, false));
  BRAID_CHECK(laid, "a set is replayed that has no estimate");
  return replay_of(laid->fixed, counts).step_seconds;
}

}  // namespace braid::planner
