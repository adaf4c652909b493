#include "planner/search/step_estimator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace braid::planner {
namespace {

using Counts = std::vector<std::int32_t>;

/// Sets of 2, 4, ... and as many tasks as there may be, of kinds from first to last, whose plans say where other sets
/// are laid.
std::vector<Counts> telling_sets(std::size_t kinds, std::int32_t most_tasks) {
  std::vector<Counts> sets;
  for (std::int32_t tasks = 2; tasks / 2 < most_tasks; tasks *= 2) {
    const auto count = static_cast<std::size_t>(std::min(tasks, most_tasks));
    Counts& counts = sets.emplace_back(kinds, 0);
    for (std::size_t t = 0; t < count; ++t) ++counts[t * kinds / count];
  }
  return sets;
}

/// Where nothing is padded steps differ with their samples, and one of mean ones tells little.
bool tells_samples_apart(const FixedPlan& fixed) {
  return fixed.padding == Padding::none;
}

double busy_gpu_seconds(const FixedPlan& fixed, const Prediction& predicted) {
  return (1 - predicted.bubble_ratio) * static_cast<double>(fixed.ranks()) * predicted.step_seconds;
}

}  // namespace

StepEstimator::StepEstimator(const PlanningInput& input, const PolicyChoice& choice, std::int32_t most_tasks)
    : input_(input), choice_(choice), bench_(input_, choice_) {
  if (choice.policy->proposes() || choice.policy->unites())
    throw error("policy {} plans one set of tasks at a time, which takes too long here; give another",
                choice.policy->name());
  const std::size_t kinds = input.workload.tasks.size();
  std::string why;
  const auto plan = [&](const Counts& counts, bool drawn) -> std::optional<Plan> {
    const Tasks tasks = tasks_of(counts, drawn);
    try {
      return make_plan(
          {tasks.workload, input.cluster, tasks.samples, input.cost, input.judge, input.overrides, input.preference},
          choice);
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
void StepEstimator::learn_splits(Candidate candidate) {
  for (const workload::Task& task : input_.workload.tasks) {
    candidate.microbatches = task.global_batch_size;
    if (std::find(candidates_.begin(), candidates_.end(), candidate) == candidates_.end())
      candidates_.push_back(candidate);
  }
}

void StepEstimator::learn_from(const Plan& plan) {
  Candidate learned{bench_.plain(plan.fixed.deployment), plan.fixed.microbatches, 0};
  for (const Candidate& known : candidates_) {
    learned.layout = known.deployment == learned.deployment ? known.layout : std::max(learned.layout, known.layout + 1);
    if (known.deployment == learned.deployment) break;
  }
  if (std::find(candidates_.begin(), candidates_.end(), learned) == candidates_.end()) candidates_.push_back(learned);
}

std::int32_t StepEstimator::layout_of(const Plan& plan) const {
  const auto like = [&](const Candidate& known) { return same_places(known.deployment, plan.fixed.deployment); };
  return std::find_if(candidates_.begin(), candidates_.end(), like)->layout;
}

StepEstimator::Tasks StepEstimator::tasks_of(std::span<const std::int32_t> counts, bool drawn) const {
  const workload::Workload& kinds = input_.workload;
  workload::Workload workload;
  workload.file = kinds.file;
  workload.backbone_reference = kinds.backbone_reference;
  workload.backbone_folder = kinds.backbone_folder;
  workload.backbone = kinds.backbone;
  std::vector<std::vector<workload::SampleSize>> sizes;
  std::vector<std::int32_t> kind_of;
  workload.tasks.reserve(static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), 0)));
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    for (std::int32_t copy = 0; copy < counts[kind]; ++copy) {
      workload::Task& task = workload.tasks.emplace_back(kinds.tasks[kind]);
      task.name = fmt::format("{}-{}", task.name, copy);
      task.seed = static_cast<std::uint64_t>(copy);
      kind_of.push_back(static_cast<std::int32_t>(kind));
      if (drawn) {
        sizes.push_back(workload::sample_sizes(task));
        continue;
      }
      const auto& total = input_.samples.total(static_cast<int>(kind));
      const std::int64_t samples = input_.samples.samples(static_cast<int>(kind));
      const auto mean = [&](std::int64_t sum) {
        return std::max<std::int64_t>(1, std::llround(static_cast<double>(sum) / static_cast<double>(samples)));
      };
      sizes.emplace_back(static_cast<std::size_t>(task.global_batch_size),
                         workload::SampleSize{mean(total.tokens), mean(total.supervised)});
    }
  }
  workload::SampleIndex index(workload.tasks, std::move(sizes));
  return {std::move(workload), std::move(index), std::move(kind_of)};
}

PolicyInput StepEstimator::policy_input(const Tasks& tasks, const Candidate& candidate) {
  PolicyInput input{tasks.workload,       tasks.samples,          bench_.latency(), bench_.capacity(),
                    candidate.deployment, candidate.microbatches, choice_.options};
  input.silent = true;
  input.kinds = tasks.kinds;
  input.laid_out = &laid_out_[static_cast<std::size_t>(&candidate - candidates_.data())];
  return input;
}

std::optional<StepEstimator::Laid> StepEstimator::lay(const Tasks& tasks) {
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

std::optional<StepEstimator::Laid> StepEstimator::lay(const Tasks& tasks, const Candidate& candidate) {
  std::optional<planner::Candidate> found =
      bench_.glance(policy_input(tasks, candidate), Bench::Asked::rates, std::numeric_limits<Bytes>::max(), 1);
  if (!found) return std::nullopt;
  FixedPlan& fixed = found->arrangement.fixed;
  const StepEstimate step{found->prediction.step_seconds, busy_gpu_seconds(fixed, found->prediction), candidate.layout};
  return Laid{std::move(fixed), step};
}

std::vector<const StepEstimator::Candidate*> StepEstimator::best_sketches(const Tasks& tasks,
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

std::vector<std::pair<double, const StepEstimator::Candidate*>> StepEstimator::sketches(const Tasks& tasks,
                                                                                        std::int64_t most_samples) {
  std::vector<std::pair<double, const Candidate*>> sketched;
  for (const Candidate& candidate : std::span(candidates_).first(learned_)) {
    if (candidate.microbatches > most_samples) continue;
    const double seconds = bench_.sketch(policy_input(tasks, candidate)).value_or(0);
    if (!std::isinf(seconds)) sketched.emplace_back(seconds, &candidate);
  }
  std::stable_sort(sketched.begin(), sketched.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return sketched;
}

std::optional<StepEstimate> StepEstimator::estimate(std::span<const std::int32_t> counts) {
  const std::int32_t tasks = std::accumulate(counts.begin(), counts.end(), 0);
  BRAID_CHECK(counts.size() == kinds() && tasks > 0, "an estimate of {} tasks of {} kinds", tasks, counts.size());
  if (tasks == 1) {
    const std::optional<Plan>& plan = only(counts);
    if (!plan) return std::nullopt;
    const Prediction& predicted = plan->predicted;
    return StepEstimate{predicted.step_seconds, busy_gpu_seconds(plan->fixed, predicted), layout_of(*plan)};
  }
  const std::optional<Laid> laid = lay(tasks_of(counts, false));
  if (!laid) return std::nullopt;
  if (!tells_samples_apart(laid->fixed)) return laid->step;
  const Prediction replay = replay_of(laid->fixed, counts);
  return StepEstimate{replay.step_seconds, busy_gpu_seconds(laid->fixed, replay), laid->step.layout};
}

const std::optional<Plan>& StepEstimator::only(std::span<const std::int32_t> counts) const {
  return alone_[static_cast<std::size_t>(std::find(counts.begin(), counts.end(), 1) - counts.begin())];
}

Prediction StepEstimator::replay_of(const FixedPlan& fixed, std::span<const std::int32_t> counts) {
  const Tasks drawn = tasks_of(counts, true);
  return predict(fixed, {drawn.workload, drawn.samples}, bench_.latency(), input_.judge);
}

double StepEstimator::replayed(std::span<const std::int32_t> counts) {
  if (std::accumulate(counts.begin(), counts.end(), 0) == 1 && only(counts))
    return replay_of(only(counts)->fixed, counts).step_seconds;
  const std::optional<Laid> laid = lay(tasks_of(counts, false));
  BRAID_CHECK(laid, "a set is replayed that has no estimate");
  return replay_of(laid->fixed, counts).step_seconds;
}

}  // namespace braid::planner
