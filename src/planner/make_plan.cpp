#include "planner/make_plan.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <utility>

#include "base/error.h"
#include "planner/misfit.h"
#include "planner/policy_bound.h"

namespace braid::planner {
namespace {

/// The fastest candidates of a glance that are looked at in full.
constexpr std::size_t kExamined = 3;
/// One of so many parts of the memory is left free where an arrangement missed by little.
constexpr Bytes kSmallShare = 32;
/// How often a policy is asked for an arrangement that fits.
constexpr int kAttempts = 6;
/// The best sketches that are arranged: up to so many tasks' worth.
constexpr std::size_t kLeastArranged = 6, kMostArranged = 24, kTasksArranged = 128;
/// What a glance finds so much slower than the fastest that fits is not looked at in full.
constexpr double kFarOff = 1.05;

Parallelism searched(const workload::Cluster& cluster, const Overrides& overrides, const PolicyChoice& choice) {
  Parallelism parallelism = choice.policy->parallelism(choice.options);
  if (cluster.gpu == "cpu") {
    parallelism.tensor = parallelism.tensor && overrides.tp.has_value();
    parallelism.data = parallelism.interleaved = false;
  }
  return parallelism;
}

std::vector<std::vector<ReplicaShape>> grid_of(const PlanningInput& input, const PolicyChoice& choice) {
  return deployments(input.workload, input.cluster, input.overrides, searched(input.cluster, input.overrides, choice));
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
        capacity_(input.cost.profile().memory_bytes),
        arranged_(std::clamp(kTasksArranged / input.workload.tasks.size(), kLeastArranged, kMostArranged)) {}

  Candidate run() {
    std::vector<Candidate> glanced;
    for (const Choice& choice : choices()) {
      if (auto candidate = glance(choice)) glanced.push_back(std::move(*candidate));
    }
    std::stable_sort(glanced.begin(), glanced.end(), faster);
    std::vector<Candidate> examined;
    double fastest_glance = 0;
    for (Candidate& candidate : glanced) {
      if (examined.size() == kExamined) break;
      const double glance = candidate.prediction.step_seconds;
      if (!examined.empty() && glance > kFarOff * fastest_glance) break;
      candidate.prediction = predict(candidate.arrangement.fixed, window_, latency_, input_.judge, Outlook::full);
      if (!fits(candidate) && !shrink(candidate)) continue;
      if (examined.empty()) fastest_glance = glance;
      examined.push_back(std::move(candidate));
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
    const auto grid = grid_of(input_, choice_);
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
    for (const auto& deployment : grid_of(input_, choice_)) {
      std::int64_t before = 0;
      for (const std::int64_t microbatches : microbatch_candidates(input_)) {
        // More than one a sample are none.
        const std::int64_t parts =
            std::min(microbatches * static_cast<std::int64_t>(deployment.size()), largest_batch(input_.workload));
        if (std::exchange(before, parts) == parts) continue;
        ++tried_;
        Choice choice{deployment, microbatches, 0};
        PolicyInput asked = policy_input(choice);
        if (best_sketches.size() == arranged_) asked.sketch_limit = *best_sketches.rbegin();
        if (const std::optional<double> sketched = choice_.policy->sketch(asked)) {
          sketches = true;
          if (std::isinf(*sketched)) continue;
          choice.sketched = *sketched;
          best_sketches.insert(*sketched);
          if (best_sketches.size() > arranged_) best_sketches.erase(std::prev(best_sketches.end()));
        }
        grid.push_back(std::move(choice));
      }
    }
    std::stable_sort(grid.begin(), grid.end(),
                     [](const Choice& a, const Choice& b) { return a.sketched < b.sketched; });
    if (sketches && grid.size() > arranged_) grid.resize(arranged_);
    return grid;
  }

  PolicyInput policy_input(const Choice& choice) {
    return {input_.workload,   input_.samples,      latency_,       capacity_,
            choice.deployment, choice.microbatches, choice_.options};
  }

  std::optional<Candidate> arrange(const PolicyInput& asked) const {
    std::optional<Arrangement> arrangement = choice_.policy->arrange(asked);
    if (!arrangement) return std::nullopt;
    FixedPlan& fixed = arrangement->fixed;
    fixed.storage = input_.cost.profile().storage();
    fixed.deployment = asked.deployment;
    fixed.microbatches = asked.microbatches;
    return Candidate{std::move(*arrangement), {}};
  }

  /// A policy that launches as far ahead as memory allows may have taken too much; it is told how much, and asked
  /// again.
  std::optional<Candidate> glance(const Choice& choice) {
    PolicyInput asked = policy_input(choice);
    FixedPlan before;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      std::optional<Candidate> candidate = arrange(asked);
      if (!candidate) return std::nullopt;
      if (attempt > 0 && alike(candidate->arrangement.fixed, before)) {
        asked.capacity -= asked.capacity / kSmallShare;
        continue;
      }
      before = candidate->arrangement.fixed;
      candidate->prediction = predict(before, window_, latency_, input_.judge, Outlook::glance);
      if (fits(*candidate)) return candidate;
      const std::vector<Bytes>& peaks = candidate->prediction.peak_memory_bytes;
      asked.capacity -= *std::max_element(peaks.begin(), peaks.end()) - capacity_;
      if (asked.capacity <= 0) return std::nullopt;
    }
    return std::nullopt;
  }

  static bool alike(const FixedPlan& a, const FixedPlan& b) {
    return a.order == b.order && a.htasks == b.htasks && a.turns == b.turns;
  }

  /// A plan that fits at a glance and not in full is arranged anew for as much less memory as it misses.
  bool shrink(Candidate& candidate) {
    const FixedPlan& fixed = candidate.arrangement.fixed;
    const Choice choice{fixed.deployment, fixed.microbatches, 0};
    PolicyInput asked = policy_input(choice);
    const std::vector<Bytes>& peaks = candidate.prediction.peak_memory_bytes;
    asked.capacity -= *std::max_element(peaks.begin(), peaks.end()) - capacity_ + capacity_ / kSmallShare;
    if (asked.capacity <= 0) return false;
    std::optional<Candidate> smaller = arrange(asked);
    if (!smaller || alike(smaller->arrangement.fixed, fixed)) return false;
    candidate = std::move(*smaller);
    candidate.prediction = predict(candidate.arrangement.fixed, window_, latency_, input_.judge, Outlook::full);
    return fits(candidate);
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
  std::size_t arranged_;
  Misfit misfit_;
  std::int64_t tried_ = 0;  // of the grid
};

void verify_telling_windows(const FixedPlan& fixed, const WindowInput& window, Bytes capacity) {
  const VerifyContext rules = verify_context(fixed, window, capacity);
  for (const std::int64_t telling : telling_windows(fixed, window)) {
    const std::vector<Violation> violations = verify(window_program(fixed, window, telling), rules);
    BRAID_CHECK(violations.empty(), "window {} of the plan breaks the rule '{}': {}", telling, name(violations[0].rule),
                violations[0].message);
  }
}

/// The cluster with all of its links through the hosts' memory; between nodes the network comes after that.
costmodel::CostModel through_hosts(const PlanningInput& input, const Policy& policy) {
  costmodel::Profile profile = input.cost.profile();
  if (profile.device.empty())
    throw error("policy {}: transport=hosts is between GPUs, and these ranks are CPUs; leave it out", policy.name());
  const costmodel::Link staged = costmodel::named_link("cpu-staged", costmodel::device_of(profile.device));
  costmodel::Link& network = profile.interconnect.inter_node;
  if (network.bandwidth_bytes_per_second > 0) {
    const double wire = network.bandwidth_bytes_per_second, copies = staged.bandwidth_bytes_per_second;
    const double latency = staged.latency_seconds + network.latency_seconds;
    network = {staged.name, 1 / (1 / wire + 1 / copies), latency};
  }
  profile.interconnect.intra_node = staged;
  return costmodel::CostModel(std::move(profile));
}

Plan make_plan_on(const PlanningInput& input, const PolicyChoice& choice) {
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
  plan.lower_bound =
      policy_bound(best.arrangement, grid_of(input, choice), input.overrides, search.window(), input.cost);
  plan.fixed = std::move(best.arrangement.fixed);
  plan.reasons = std::move(best.arrangement.reasons);
  plan.predicted = best.prediction;
  plan.data_hashes = data_hashes(input.workload);
  plan.planning_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return plan;
}

}  // namespace

void check_placement(const workload::Workload& workload, const workload::Cluster& cluster, const Overrides& overrides,
                     const PolicyChoice& choice) {
  deployments(workload, cluster, overrides, searched(cluster, overrides, choice));
}

Plan make_plan(const PlanningInput& input, const PolicyChoice& choice) {
  for (const auto& [option, value] : choice.options) {
    const bool of_gpus = (option == "kernels" && value == "fused") || (option == "pruning" && value == "off");
    if (of_gpus && input.cost.profile().device.empty())
      throw error("policy {}: {}={} are kernels of GPUs, and these ranks are CPUs; leave it out", choice.policy->name(),
                  option, value);
    if (option == "overlap" && value == "off" && input.cost.profile().device.empty())
      throw error("policy {}: overlap=off is between GPUs, and these ranks are CPUs; leave it out",
                  choice.policy->name());
  }
  if (!stages_through_hosts(choice.options)) return make_plan_on(input, choice);
  const costmodel::CostModel staged = through_hosts(input, *choice.policy);
  return make_plan_on({input.workload, input.cluster, input.samples, staged, input.judge, input.overrides}, choice);
}

}  // namespace braid::planner
