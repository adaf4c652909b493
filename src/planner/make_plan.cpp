#include "planner/make_plan.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace braid::planner {
namespace {

std::vector<ReplicaShape> place_layers(const workload::Workload& workload, const workload::Cluster& cluster,
                                       const Overrides& overrides) {
  const std::int64_t tp = overrides.tp.value_or(1);
  if (tp != 1) throw error("--tp {}: this build does not plan tensor parallelism; give --tp 1", tp);
  const std::int64_t ranks = cluster.gpus();
  const std::int64_t layers = workload.backbone.layers;
  const std::int64_t pp = overrides.pp.value_or(std::min(ranks, layers));
  if (pp < 1) throw error("--pp {} is not usable; give pp >= 1", pp);
  if (pp > layers)
    throw error("{} stages are more than the {} layers of {}; give --pp <= {}", pp, layers, workload.backbone.name,
                layers);
  if (pp > ranks)
    throw error("{} stages need {} ranks and the cluster has {}; give --pp <= {} or --ranks {}", pp, pp, ranks, ranks,
                pp);
  return {{static_cast<std::int32_t>(tp), even_layers(layers, pp)}};
}

/// 1, 2, 4, ... up to one sample a microbatch.
std::vector<std::int64_t> microbatch_candidates(const PlanningInput& input) {
  std::int64_t most = 1;
  for (const workload::Task& task : input.workload.tasks) most = std::max(most, task.global_batch_size);
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

/// The task whose samples are longest: with a sample a microbatch it is the one that still needs most.
const workload::Task& heaviest_task(const PlanningInput& input) {
  return *std::max_element(input.workload.tasks.begin(), input.workload.tasks.end(),
                           [](const auto& a, const auto& b) { return a.max_length < b.max_length; });
}

}  // namespace

void check_placement(const workload::Workload& workload, const workload::Cluster& cluster, const Overrides& overrides) {
  place_layers(workload, cluster, overrides);
}

std::vector<LayerRange> even_layers(std::int64_t layers, std::int64_t stages) {
  std::vector<LayerRange> ranges;
  std::int64_t next = 0;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const std::int64_t count = layers / stages + (stage < layers % stages ? 1 : 0);
    ranges.push_back({static_cast<std::int32_t>(next), static_cast<std::int32_t>(next + count)});
    next += count;
  }
  return ranges;
}

Plan make_plan(const PlanningInput& input, const PolicyChoice& choice) {
  const auto began = std::chrono::steady_clock::now();
  if (input.workload.reproducible)
    throw error("{}: 'reproducible: true' is not supported by this build; set it to false",
                input.workload.file.string());
  FixedPlan fixed = choice.policy->arrange(static_cast<std::int32_t>(input.workload.tasks.size()), choice.options);
  fixed.storage = input.cost.profile().storage();
  fixed.deployment = place_layers(input.workload, input.cluster, input.overrides);
  const Bytes capacity = input.cost.profile().memory_bytes;
  const WindowInput window{input.workload, input.samples};
  std::optional<FixedPlan> best;
  Prediction best_prediction;
  Bytes least_missing = 0;
  for (const std::int64_t count : microbatch_candidates(input)) {
    fixed.microbatches = count;
    const Prediction prediction = predict(fixed, window, input.cost, input.judge);
    const Bytes peak = *std::max_element(prediction.peak_memory_bytes.begin(), prediction.peak_memory_bytes.end());
    if (capacity > 0 && peak > capacity) {
      least_missing = least_missing == 0 ? peak - capacity : std::min(least_missing, peak - capacity);
      continue;
    }
    if (!best || prediction.step_seconds < best_prediction.step_seconds) {
      best = fixed;
      best_prediction = prediction;
    }
  }
  if (!best) {
    const workload::Task& task = heaviest_task(input);
    throw error(
        "{}: task '{}' does not fit memory under {}: the fullest rank misses {} bytes of {}; lower max_length or "
        "global_batch_size, use more ranks, or a policy with one shared backbone",
        input.workload.file.string(), task.name, choice.policy->name(), least_missing, capacity);
  }
  const VerifyContext rules = verify_context(*best, window, capacity);
  for (const std::int64_t telling : telling_windows(*best, window)) {
    const std::vector<Violation> violations = verify(window_program(*best, window, telling), rules);
    BRAID_CHECK(violations.empty(), "window {} of the plan breaks the rule '{}': {}", telling, name(violations[0].rule),
                violations[0].message);
  }
  Plan plan;
  plan.workload = input.workload;
  plan.cluster = input.cluster;
  plan.profile = input.cost.profile();
  plan.policy = choice.policy->name();
  plan.options = choice.options;
  plan.fixed = *best;
  plan.predicted = best_prediction;
  plan.lower_bound = busiest_stage_bound(best_prediction);
  plan.data_hashes = data_hashes(input.workload);
  plan.planning_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return plan;
}

}  // namespace braid::planner
