#include "planner/make_plan.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <utility>

#include "base/error.h"
#include "planner/lower_bound.h"
#include "planner/misfit.h"
#include "planner/structured_plan.h"

namespace braid::planner {
namespace {

/// The fastest candidates of a glance that are looked at in full.
constexpr std::size_t kExamined = 3;
/// How often a policy is asked for an arrangement that fits.
constexpr int kAttempts = 3;
/// The best sketches that are arranged.
constexpr std::size_t kArranged = 6;
/// A glance sees one step of several: what it finds so much slower than the best found in full is not looked at.
constexpr double kGlanceError = 1.1;

Parallelism searched(const workload::Cluster& cluster, const Overrides& overrides, const Policy& policy) {
  Parallelism parallelism = policy.parallelism();
  if (cluster.gpu == "cpu") {
    parallelism.tensor = parallelism.tensor && overrides.tp.has_value();
    parallelism.data = parallelism.interleaved = false;
  }
  return parallelism;
}

std::int64_t largest_batch(const workload::Workload& workload) {
  std::int64_t most = 1;
  for (const workload::Task& task : workload.tasks) most = std::max(most, task.global_batch_size);
  return most;
}

/// 1, 2, 4, ... up to one sample a microbatch.
std::vector<std::int64_t> microbatch_candidates(const PlanningInput& input) {
  const std::int64_t most = largest_batch(input.workload);
  if (input.overrides.microbatches) {
    const std::int64_t fixed = *input.overrides.microbatches;
    if (fixed < 1 || fixed > most)
      throw error("--microbatches {} is not usable; give 1..{}, the samples of the largest global batch", fixed, most);
    return {fixed};
  }
  std::vector<std::int64_t> candidates;
  for (std::int64_t count = 1; count < most; count *= 2) candidates.push_back(count);
  candidates.push_back(most);
  return candidates;
}

struct Candidate {
  Arrangement arrangement;
  Prediction prediction;
};

/// Tries candidates, keeps those that fit, and remembers by how little the others missed.
class Search {
 public:
  Search(const PlanningInput& input, const PolicyChoice& choice)
      : input_(input),
        choice_(choice),
        window_{input.workload, input.samples},
        latency_(input.cost, input.workload.backbone),
        capacity_(input.cost.profile().memory_bytes) {}

  Candidate run() {
    std::vector<Candidate> glanced;
    for (const Choice& choice : choices()) {
      if (auto candidate = glance(choice)) glanced.push_back(std::move(*candidate));
    }
    std::stable_sort(glanced.begin(), glanced.end(), faster);
    std::vector<Candidate> examined;
    for (Candidate& candidate : glanced) {
      if (examined.size() == kExamined) break;
      const auto slower = [&](const Candidate& other) {
        return candidate.prediction.step_seconds > kGlanceError * other.prediction.step_seconds;
      };
      if (std::any_of(examined.begin(), examined.end(), slower)) break;
      candidate.prediction = predict(candidate.arrangement.fixed, window_, latency_, input_.judge, Outlook::full);
      if (fits(candidate)) examined.push_back(std::move(candidate));
    }
    if (examined.empty() && misfit_.missing == 0) miss_with_least();
    if (examined.empty())
      throw error("{}", describe_misfit(misfit_, input_.workload, choice_.policy->name(), capacity_));
    std::stable_sort(examined.begin(), examined.end(), faster);
    explain_choice(examined, glanced.size());
    return std::move(examined.front());
  }

  const WindowInput& window() const { return window_; }
  Bytes capacity() const { return capacity_; }

 private:
  static bool faster(const Candidate& a, const Candidate& b) {
    return a.prediction.step_seconds < b.prediction.step_seconds;
  }

  /// The policy arranged nothing: what every task by itself would miss by, in microbatches of a sample on the
  /// deployment with the most stages.
  void miss_with_least() {
    const Parallelism parallelism = searched(input_.cluster, input_.overrides, *choice_.policy);
    const auto grid = deployments(input_.workload, input_.cluster, input_.overrides, parallelism);
    Candidate least;
    FixedPlan& fixed = least.arrangement.fixed;
    one_task_per_htask(static_cast<std::int32_t>(input_.workload.tasks.size()), fixed);
    fixed.deployment = *std::max_element(grid.begin(), grid.end(), [](const auto& a, const auto& b) {
      return a.front().stages() * a.front().tp < b.front().stages() * b.front().tp;
    });
    fixed.microbatches = largest_batch(input_.workload);
    fixed.padding = Padding::max_length;
    fixed.storage = input_.cost.profile().storage();
    least.prediction = predict(fixed, window_, latency_, input_.judge, Outlook::glance);
    fits(least);
  }

  /// Why this deployment, in front of why the policy arranged it so.
  void explain_choice(std::vector<Candidate>& examined, std::size_t fitting) const {
    const auto described = [](const Candidate& candidate) {
      const FixedPlan& fixed = candidate.arrangement.fixed;
      return fmt::format("{}, {} microbatch{} a global batch", describe(fixed.deployment), fixed.microbatches,
                         fixed.microbatches == 1 ? "" : "es");
    };
    std::string reason = fmt::format("{}: of {} on the grid, {} were laid out and fit memory",
                                     described(examined.front()), tried_, fitting);
    if (examined.size() > 1) {
      const double slower = examined[1].prediction.step_seconds / examined[0].prediction.step_seconds - 1;
      reason += fmt::format("; the next best, {}, takes {:.1f} % longer", described(examined[1]), 100 * slower);
    }
    std::vector<std::string>& reasons = examined.front().arrangement.reasons;
    reasons.insert(reasons.begin(), reason);
  }

  struct Choice {
    std::vector<ReplicaShape> deployment;
    std::int64_t microbatches = 1;
    double sketched = 0;
  };

  /// What the grid holds; where the policy sketches, the best of it.
  std::vector<Choice> choices() {
    std::vector<Choice> grid;
    bool sketches = false;
    std::multiset<double> best_sketches;
    const Parallelism parallelism = searched(input_.cluster, input_.overrides, *choice_.policy);
    for (const auto& deployment : deployments(input_.workload, input_.cluster, input_.overrides, parallelism)) {
      std::int64_t before = 0;
      for (const std::int64_t microbatches : microbatch_candidates(input_)) {
        // More than one a sample are none.
        const std::int64_t parts =
            std::min(microbatches * static_cast<std::int64_t>(deployment.size()), largest_batch(input_.workload));
        if (std::exchange(before, parts) == parts) continue;
        ++tried_;
        Choice choice{deployment, microbatches, 0};
        PolicyInput asked = policy_input(choice);
        if (best_sketches.size() == kArranged) asked.sketch_limit = *best_sketches.rbegin();
        if (const std::optional<double> sketched = choice_.policy->sketch(asked)) {
          sketches = true;
          if (std::isinf(*sketched)) continue;
          choice.sketched = *sketched;
          best_sketches.insert(*sketched);
          if (best_sketches.size() > kArranged) best_sketches.erase(std::prev(best_sketches.end()));
        }
        grid.push_back(std::move(choice));
      }
    }
    std::stable_sort(grid.begin(), grid.end(),
                     [](const Choice& a, const Choice& b) { return a.sketched < b.sketched; });
    if (sketches && grid.size() > kArranged) grid.resize(kArranged);
    return grid;
  }

  PolicyInput policy_input(const Choice& choice) {
    return {input_.workload,   input_.samples,      latency_,       capacity_,
            choice.deployment, choice.microbatches, choice_.options};
  }

  /// A policy that launches as far ahead as memory allows may have taken too much; it is told how much, and asked
  /// again.
  std::optional<Candidate> glance(const Choice& choice) {
    PolicyInput asked = policy_input(choice);
    FixedPlan before;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      auto arrangement = choice_.policy->arrange(asked);
      if (!arrangement) return std::nullopt;
      FixedPlan& fixed = arrangement->fixed;
      if (attempt > 0 && fixed.order == before.order && fixed.htasks == before.htasks) return std::nullopt;
      before = fixed;
      fixed.storage = input_.cost.profile().storage();
      fixed.deployment = choice.deployment;
      fixed.microbatches = choice.microbatches;
      Candidate candidate{std::move(*arrangement), {}};
      candidate.prediction = predict(candidate.arrangement.fixed, window_, latency_, input_.judge, Outlook::glance);
      if (fits(candidate)) return candidate;
      const std::vector<Bytes>& peaks = candidate.prediction.peak_memory_bytes;
      asked.capacity -= *std::max_element(peaks.begin(), peaks.end()) - capacity_;
      if (asked.capacity <= 0) return std::nullopt;
    }
    return std::nullopt;
  }

  bool fits(const Candidate& candidate) {
    const std::vector<Bytes>& peaks = candidate.prediction.peak_memory_bytes;
    const auto fullest = std::max_element(peaks.begin(), peaks.end());
    if (capacity_ <= 0 || *fullest <= capacity_) return true;
    const Bytes missing = *fullest - capacity_;
    if (misfit_.missing == 0 || missing < misfit_.missing)
      misfit_ = {static_cast<std::int32_t>(fullest - peaks.begin()), missing, candidate.arrangement.fixed};
    return false;
  }

  const PlanningInput& input_;
  const PolicyChoice& choice_;
  WindowInput window_;
  ClockLatency latency_;
  Bytes capacity_;
  Misfit misfit_;
  std::int64_t tried_ = 0;  // of the grid
};

std::size_t tasks_of(const FixedPlan& fixed) {
  std::size_t tasks = 0;
  for (const std::vector<TaskIndex>& htask : fixed.htasks) tasks += htask.size();
  return tasks;
}

/// What the policy was free to choose on the deployment that it got.
BoundScope bound_scope(const Arrangement& arrangement, const Overrides& overrides) {
  const FixedPlan& fixed = arrangement.fixed;
  BoundScope scope;
  scope.deployment = fixed.deployment;
  scope.padding = fixed.padding;
  scope.least_chunk = scope.most_chunk = fixed.chunk_size;
  for (const std::int64_t size : arrangement.chunk_sizes) {
    scope.least_chunk = std::min(scope.least_chunk, size);
    scope.most_chunk = std::max(scope.most_chunk, size);
  }
  scope.skips_padding = fixed.skips_padding;
  scope.kernels = fixed.adapter_kernels;
  scope.one_by_one = !fixed.turns.empty() && fixed.turns.size() == fixed.htasks.size();
  const bool streams = fixed.pipeline == PipelineTemplate::lora_1f1b || fixed.pipeline == PipelineTemplate::lora_gpipe;
  scope.shares_microbatches =
      streams || fixed.pipeline == PipelineTemplate::structured || fixed.htasks.size() < tasks_of(fixed);
  scope.drains = !streams;
  scope.microbatches = overrides.microbatches.value_or(0);
  return scope;
}

/// Whether the weights alone are more than a rank has memory for, on some stage.
bool cannot_hold_weights(const std::vector<ReplicaShape>& deployment, const FixedPlan& fixed,
                         const costmodel::BackboneShape& backbone, Bytes capacity) {
  if (capacity <= 0) return false;
  const Bytes shares = fixed.shards_weights ? static_cast<Bytes>(deployment.size()) : 1;
  for (const costmodel::StageShape& stage : stage_shapes(deployment.front())) {
    const Bytes weights = costmodel::backbone_bytes(backbone, stage, fixed.storage);
    if (fixed.backbone_copies * weights / shares > capacity) return true;
  }
  return false;
}

/// Over all deployments that the policy might have chosen, save those that cannot hold the weights.
LowerBound bound_of_all(const Arrangement& arrangement, const PlanningInput& input, const Policy& policy,
                        const WindowInput& window) {
  const FixedPlan& fixed = arrangement.fixed;
  BoundScope scope = bound_scope(arrangement, input.overrides);
  BestRates rates(input.cost);
  LowerBound least = lower_bound(scope, window, input.cost, rates);
  least.deployment_step_seconds = least.step_seconds;
  const std::string chosen = describe(fixed.deployment);
  const Parallelism parallelism = searched(input.cluster, input.overrides, policy);
  for (const auto& deployment : deployments(input.workload, input.cluster, input.overrides, parallelism)) {
    if (describe(deployment) == chosen ||
        cannot_hold_weights(deployment, fixed, input.workload.backbone, input.cost.profile().memory_bytes))
      continue;
    scope.deployment = deployment;
    const LowerBound other = lower_bound(scope, window, input.cost, rates);
    if (other.step_seconds >= least.step_seconds) continue;
    least.step_seconds = other.step_seconds;
    least.binds = fmt::format("{} of {}", other.binds, describe(deployment));
  }
  return least;
}

void verify_telling_windows(const FixedPlan& fixed, const WindowInput& window, Bytes capacity) {
  const VerifyContext rules = verify_context(fixed, window, capacity);
  for (const std::int64_t telling : telling_windows(fixed, window)) {
    const std::vector<Violation> violations = verify(window_program(fixed, window, telling), rules);
    BRAID_CHECK(violations.empty(), "window {} of the plan breaks the rule '{}': {}", telling, name(violations[0].rule),
                violations[0].message);
  }
}

}  // namespace

void check_placement(const workload::Workload& workload, const workload::Cluster& cluster, const Overrides& overrides,
                     const Policy& policy) {
  deployments(workload, cluster, overrides, searched(cluster, overrides, policy));
}

Plan make_plan(const PlanningInput& input, const PolicyChoice& choice) {
  const auto began = std::chrono::steady_clock::now();
  if (input.workload.reproducible)
    throw error("{}: 'reproducible: true' is not supported by this build; set it to false",
                input.workload.file.string());
  Search search(input, choice);
  Candidate best = search.run();
  verify_telling_windows(best.arrangement.fixed, search.window(), search.capacity());
  Plan plan;
  plan.workload = input.workload;
  plan.cluster = input.cluster;
  plan.profile = input.cost.profile();
  plan.policy = choice.policy->name();
  plan.options = choice.options;
  plan.lower_bound = bound_of_all(best.arrangement, input, *choice.policy, search.window());
  plan.fixed = std::move(best.arrangement.fixed);
  plan.reasons = std::move(best.arrangement.reasons);
  plan.predicted = best.prediction;
  plan.data_hashes = data_hashes(input.workload);
  plan.planning_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return plan;
}

}  // namespace braid::planner
