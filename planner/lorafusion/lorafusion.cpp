#include "planner/lorafusion/lorafusion.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "planner/plan/head_tail_groups.h"
#include "planner/plan/replica_costs.h"

namespace braid::planner {
namespace {

/// Larger microbatches gain nothing more on any GPU, and leave pipelines empty.
constexpr std::int64_t kMostUseful = 65536;
/// Capacities that are tried: the largest, and so many times smaller ones.
constexpr std::int64_t kSmaller = 2;
constexpr std::size_t kPlaces = 8;
/// Of LoRAFusion's kernels; fits samples of any length.
constexpr std::int64_t kUsualMultiple = 64;
/// Global batches of each task that lengths are told from.
constexpr std::int64_t kBatchesSeen = 16;

/// A deployment with a capacity, and what a step looks to take.
struct Place {
  std::vector<ReplicaShape> deployment;
  std::int64_t capacity = 0;
  double seconds = 0;
};

class FusionProposing {
 public:
  FusionProposing(const ProposalInput& input, const LoraFusionRules& rules)
      : input_(input), rules_(rules), costs_(input, rules.kernels, true) {
    collect_lengths();
    if (rules.multiple > std::max(kUsualMultiple, longest_))
      throw error("multiple={} is more than the longest sample, of {} tokens; give {} at the most", rules.multiple,
                  longest_, std::max(kUsualMultiple, longest_));
    if (rules.capacity > 0 && rules.capacity < whole(longest_))
      throw error("capacity={} does not hold the longest sample, of {} tokens; give {} at least", rules.capacity,
                  longest_, whole(longest_));
    const auto tasks = static_cast<std::int64_t>(input.workload.tasks.size());
    if (rules.groups > tasks) throw error("groups={} is more than there are tasks; give 1..{}", rules.groups, tasks);
  }

  std::vector<Arrangement> run() {
    std::vector<Place> places;
    for (std::vector<ReplicaShape> deployment : input_.deployments) {
      for (const costmodel::RecomputeKind kind : rules_.recompute) {
        recompute_all(kind, deployment);
        add_places(deployment, places);
      }
    }
    std::stable_sort(places.begin(), places.end(),
                     [](const Place& a, const Place& b) { return a.seconds < b.seconds; });
    const std::size_t looked_at = places.size();
    if (places.size() > kPlaces) places.resize(kPlaces);
    std::vector<Arrangement> arrangements;
    for (const Place& place : places) {
      for (const std::int64_t groups : group_counts()) {
        for (const bool merges : rules_.merges)
          arrangements.push_back(arrangement_of(place, groups, merges, looked_at));
      }
    }
    return arrangements;
  }

 private:
  std::int64_t whole(std::int64_t tokens) const {
    return (tokens + rules_.multiple - 1) / rules_.multiple * rules_.multiple;
  }

  void collect_lengths() {
    double samples = 0;
    for (std::size_t t = 0; t < input_.workload.tasks.size(); ++t) {
      const auto task = static_cast<TaskIndex>(t);
      const std::int64_t batches = std::min(kBatchesSeen, input_.samples.batches_per_epoch(task));
      double tokens = 0, count = 0;
      for (std::int64_t batch = 0; batch < batches; ++batch) {
        for (const workload::SampleRef& sample : input_.samples.global_batch(task, batch))
          tokens += static_cast<double>(sample.tokens), ++count;
      }
      lengths_.push_back(tokens / count);
      step_tokens_ += tokens / static_cast<double>(batches);
      samples += count / static_cast<double>(batches);
      for (const workload::SampleSize& size : input_.samples.sizes(task)) longest_ = std::max(longest_, size.tokens);
    }
    mean_ = std::max<std::int64_t>(2, static_cast<std::int64_t>(step_tokens_ / samples));
  }

  void add_places(const std::vector<ReplicaShape>& deployment, std::vector<Place>& places) {
    const ReplicaShape& replica = deployment.front();
    const std::int64_t least = whole(longest_);
    const std::int64_t useful = std::max(least, whole(static_cast<std::int64_t>(step_tokens_) + 1));
    const std::int64_t most =
        costs_.most_tokens(replica, rules_.multiple, std::min(std::max(kMostUseful, least), useful));
    if (rules_.capacity > 0) {
      if (rules_.capacity <= most || input_.capacity == 0)
        add_place(with_fewest_layers(deployment, rules_.capacity), rules_.capacity, places);
      return;
    }
    if (most < least) return;
    for (std::int64_t capacity = most;;
         capacity = std::max(least, capacity / kSmaller / rules_.multiple * rules_.multiple)) {
      add_place(with_fewest_layers(deployment, capacity), capacity, places);
      if (capacity == least) break;
    }
  }

  /// Where recomputation may be chosen, of as few layers as hold such microbatches.
  std::vector<ReplicaShape> with_fewest_layers(const std::vector<ReplicaShape>& deployment,
                                               std::int64_t capacity) const {
    if (!input_.may_recompute() || !recomputes(deployment)) return deployment;
    return std::vector<ReplicaShape>(deployment.size(), costs_.with_fewest_layers(deployment.front(), capacity));
  }

  /// As if all microbatches were full: as many as there are on the slowest stage, and no fewer than fill the pipeline,
  /// as no task's next batch may begin before its last one has ended.
  void add_place(const std::vector<ReplicaShape>& deployment, std::int64_t capacity, std::vector<Place>& places) const {
    const ReplicaShape& replica = deployment.front();
    const std::int64_t rows = std::max<std::int64_t>(1, capacity / mean_);
    const double pass = costs_.slowest_stage(replica, costs_.load_of(rows, mean_));
    const double full = static_cast<double>(rows * mean_);
    const double microbatches = step_tokens_ / full / static_cast<double>(deployment.size());
    const double share = std::min(1.0, microbatches);
    Place place{deployment, capacity, pass * std::max(microbatches, share * static_cast<double>(replica.stages()))};
    const bool is_known = std::any_of(places.begin(), places.end(), [&](const Place& one) {
      return one.capacity == capacity && one.deployment == deployment;
    });
    if (!is_known) places.push_back(std::move(place));
  }

  std::vector<std::int64_t> group_counts() const {
    if (rules_.groups > 0) return {rules_.groups};
    return group_counts_of(static_cast<std::int64_t>(lengths_.size()));
  }

  Arrangement arrangement_of(const Place& place, std::int64_t groups, bool merges, std::size_t looked_at) const {
    Arrangement arrangement;
    FixedPlan& fixed = arrangement.fixed;
    fixed.deployment = place.deployment;
    group_tasks(lengths_, groups, fixed);
    fixed.schedule.pipeline = PipelineTemplate::lora_1f1b;
    fixed.batching.padding = Padding::none;
    fixed.adapter_kernels = rules_.kernels;
    fixed.batching.bins = {place.capacity, rules_.multiple, rules_.search, merges};
    arrangement.may_fuse = true;
    if (input_.silent) return arrangement;
    const std::int64_t tokens = whole(static_cast<std::int64_t>(step_tokens_));
    arrangement.reasons = {
        fmt::format(
            "of {} deployments with a capacity that hold the longest sample, of {} tokens, the {} that look the "
            "fastest were replayed, each with {} groupings",
            looked_at, longest_, std::min(kPlaces, looked_at), group_counts().size()),
        fmt::format("a step's samples, {} tokens in the mean, in microbatches of up to {}, each task's padded to "
                    "multiples of {}: as few as are found, and the last as empty as can be",
                    tokens, place.capacity, rules_.multiple),
        groups == 1
            ? std::string("all tasks in one group")
            : fmt::format("tasks in {} groups, those of the shortest samples with those of the longest", groups)};
    if (merges)
      arrangement.reasons.push_back(
          "what enters next fills up the last microbatch of a step, where no task waits for its own Step by that");
    return arrangement;
  }

  const ProposalInput& input_;
  const LoraFusionRules& rules_;
  ReplicaCosts costs_;
  std::vector<double> lengths_;  // per task, in the mean
  double step_tokens_ = 0;       // of all tasks
  std::int64_t longest_ = 1;
  std::int64_t mean_ = 2;
};

}  // namespace

std::vector<Arrangement> propose_lorafusion(const ProposalInput& input, const LoraFusionRules& rules) {
  return FusionProposing(input, rules).run();
}

}  // namespace braid::planner
