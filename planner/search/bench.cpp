#include "planner/search/bench.h"

#include <algorithm>
#include <cmath>

#include "planner/plan/stage_layers.h"
#include "planner/plan/stash_budget.h"
#include "planner/policies/common_options.h"
#include "planner/search/through_hosts.h"
#include "planner/window/run_memory.h"

namespace braid::planner {
namespace {

using costmodel::RecomputeKind;

/// One of so many parts of the memory is left free where an arrangement missed by little.
constexpr Bytes kSmallShare = 32;

WindowInput window_of(const PolicyInput& asked) {
  return {asked.workload, asked.samples};
}

bool alike(const FixedPlan& a, const FixedPlan& b) {
  return a.schedule.order == b.schedule.order && a.htasks == b.htasks && a.schedule.turns == b.schedule.turns &&
         a.schedule.admissions == b.schedule.admissions;
}

}  // namespace

Bench::Bench(const PlanningInput& input, const PolicyChoice& choice)
    : input_(input),
      choice_(choice),
      recompute_(recompute_choice(choice, input.cost.profile())),
      staged_(staged_cost(input.cost, choice)),
      latency_(cost(), input.workload.backbone),
      rates_(cost()),
      capacity_(usable_memory(cost().profile(), input.preference).usable) {}

std::vector<ReplicaShape> Bench::plain(std::vector<ReplicaShape> deployment) const {
  recompute_all(recompute_.first(), deployment);
  if (shares_tokens(choice_.options)) share_tokens(deployment);
  return deployment;
}

PolicyInput Bench::ask(const std::vector<ReplicaShape>& deployment, std::int64_t microbatches) {
  return {input_.workload, input_.samples, latency_, capacity_, deployment, microbatches, choice_.options};
}

std::vector<Candidate> Bench::propose(std::span<const std::vector<ReplicaShape>> deployments) {
  const ProposalInput asked{input_.workload,
                            input_.samples,
                            input_.cluster,
                            latency_,
                            capacity_,
                            input_.overrides,
                            deployments,
                            choice_.options,
                            recompute_.kinds,
                            false,
                            shares_tokens(choice_.options),
                            input_.models};
  std::vector<Candidate> candidates;
  for (Arrangement& arrangement : choice_.policy->propose(asked)) {
    arrangement.fixed.storage = cost().storage();
    candidates.push_back({std::move(arrangement), {}});
  }
  return candidates;
}

std::optional<Candidate> Bench::arrange(const PolicyInput& asked) const {
  std::optional<Arrangement> arrangement = choice_.policy->arrange(asked);
  if (!arrangement) return std::nullopt;
  FixedPlan& fixed = arrangement->fixed;
  fixed.storage = cost().storage();
  fixed.deployment = asked.deployment;
  fixed.batching.microbatches = asked.microbatches;
  return Candidate{std::move(*arrangement), {}};
}

std::optional<Candidate> Bench::arrange_any(const PolicyInput& asked) const {
  std::optional<Candidate> candidate = arrange(asked);
  for (std::size_t k = 1; k < recompute_.kinds.size() && !candidate; ++k) {
    std::vector<ReplicaShape> deployment = asked.deployment;
    recompute_all(recompute_.kinds[k], deployment);
    candidate = arrange(asked.on(deployment));
  }
  return candidate;
}

std::optional<double> Bench::sketch(const PolicyInput& asked) const {
  std::optional<Sketch> sketched = choice_.policy->sketch(asked);
  // What is recomputed takes longer: it is worth no look but where it frees the memory that a faster one misses.
  const auto misses = [&] { return sketched && std::isinf(sketched->seconds) && sketched->short_of_memory; };
  for (std::size_t k = 1; k < recompute_.kinds.size() && misses(); ++k) {
    std::vector<ReplicaShape> deployment = asked.deployment;
    recompute_all(recompute_.kinds[k], deployment);
    sketched = choice_.policy->sketch(asked.on(deployment));
  }
  return sketched ? std::optional(sketched->seconds) : std::nullopt;
}

std::optional<Candidate> Bench::glance(const PolicyInput& asked, Asked what, Bytes most, int attempts) {
  if (what == Asked::memory && recompute_.searches()) {
    std::vector<ReplicaShape> deployment = asked.deployment;
    recompute_all(recompute_.kinds.back(), deployment);
    return glance_as_is(asked.on(deployment), what, most, attempts);
  }
  std::optional<Candidate> found = glance_as_is(asked, what, most, attempts);
  for (std::size_t k = 1; k < recompute_.kinds.size() && !found; ++k) {
    std::vector<ReplicaShape> deployment = asked.deployment;
    recompute_all(recompute_.kinds[k], deployment);
    found = glance_as_is(asked.on(deployment), what, most, attempts);
    if (found && recompute_.of_layers)
      found = with_least_recomputation(*found, asked, recompute_.kinds[k], Outlook::glance);
  }
  return found;
}

std::optional<Candidate> Bench::glance_as_is(PolicyInput asked, Asked what, Bytes most, int attempts) {
  FixedPlan before;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    std::optional<Candidate> candidate = arrange(asked);
    if (!candidate) return std::nullopt;
    if (attempt > 0 && alike(candidate->arrangement.fixed, before)) {
      asked.capacity -= asked.capacity / kSmallShare;
      continue;
    }
    before = candidate->arrangement.fixed;
    if (is_hopeless(before, asked.workload)) return std::nullopt;
    Predictor predictor(candidate->arrangement.fixed, window_of(asked), Outlook::glance);
    if (fits(*candidate, predictor)) {
      if (what == Asked::rates && candidate->fullest() <= most)
        predictor.rates(latency_, input_.judge, candidate->prediction);
      return candidate;
    }
    asked.capacity -= candidate->fullest() - capacity_;
    if (asked.capacity <= 0) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Candidate> Bench::with_fewest_layers(Candidate candidate, const PolicyInput& asked, Outlook outlook) {
  std::vector<ReplicaShape>& deployment = candidate.arrangement.fixed.deployment;
  for (ReplicaShape& replica : deployment) {
    const auto stage = std::find_if(replica.recompute.begin(), replica.recompute.end(),
                                    [](const costmodel::Recompute& recompute) { return recompute.any(); });
    if (stage != replica.recompute.end()) recompute_all(stage->kind, replica);
  }
  const std::vector<ReplicaShape> all = deployment;
  {
    Predictor predictor(candidate.arrangement.fixed, window_of(asked), outlook);
    if (!fits(candidate, predictor)) return std::nullopt;
    StageLayers layers(all);
    while (!layers.found()) layers.halve(fitting_ranks(predictor.peaks_with(layers.in_the_middle())));
    deployment = layers.in_the_middle();
  }
  if (deployment == all || fits(candidate, asked, outlook)) return candidate;
  // Other windows hold more than those that told it with all layers.
  for (StageLayers layers(all);;) {
    deployment = layers.in_the_middle();
    const bool fit = fits(candidate, asked, outlook);
    if (layers.found()) return fit ? std::optional(std::move(candidate)) : std::nullopt;
    layers.halve(fitting_ranks(candidate.prediction.peak_memory_bytes));
  }
}

std::optional<Candidate> Bench::with_least_recomputation(const Candidate& candidate, const PolicyInput& asked,
                                                         RecomputeKind least, Outlook outlook) {
  std::optional<Candidate> best;
  for (const RecomputeKind kind : recompute_.kinds) {
    if (kind == RecomputeKind::none || kind < least) continue;
    Candidate all = candidate;
    recompute_all(kind, all.arrangement.fixed.deployment);
    std::optional<Candidate> other = with_fewest_layers(std::move(all), asked, outlook);
    if (!other) continue;
    Predictor(other->arrangement.fixed, window_of(asked), Outlook::glance)
        .rates(latency_, input_.judge, other->prediction);
    if (!best || faster(*other, *best)) best = std::move(other);
  }
  return best;
}

bool Bench::fits_in_full(Candidate& candidate, const PolicyInput& asked) {
  if (fits(candidate, asked, Outlook::full) || fits_arranged_anew(candidate, asked)) return true;
  if (!recompute_.searches()) return false;
  recompute_all(recompute_.kinds.back(), candidate.arrangement.fixed.deployment);
  if (!fits(candidate, asked, Outlook::full)) return false;
  recompute_less(candidate, asked);
  return true;
}

bool Bench::judge_proposal(Candidate& candidate, const PolicyInput& asked, Asked what) {
  if (what == Asked::rates ? judge(candidate, asked, Outlook::full) : fits(candidate, asked, Outlook::full))
    return true;
  if (!chooses_layers() || !recomputes(candidate.arrangement.fixed.deployment)) return false;
  std::optional<Candidate> heavier = with_fewest_layers(candidate, asked, Outlook::full);
  if (!heavier) return false;
  candidate = std::move(*heavier);
  if (what == Asked::rates) predict_rates(candidate);
  return true;
}

void Bench::recompute_less(Candidate& candidate, const PolicyInput& asked) {
  if (!recompute_.searches()) return;
  for (const RecomputeKind kind : recompute_.kinds) {
    Candidate lighter = candidate;
    recompute_all(kind, lighter.arrangement.fixed.deployment);
    if (!fits(lighter, asked, Outlook::full)) continue;
    const bool some = recompute_.of_layers && kind != RecomputeKind::none;
    candidate = some ? *with_least_recomputation(lighter, asked, kind, Outlook::full) : std::move(lighter);
    return;
  }
}

bool Bench::fits_arranged_anew(Candidate& candidate, PolicyInput asked) {
  asked.capacity -= candidate.fullest() - capacity_ + capacity_ / kSmallShare;
  if (asked.capacity <= 0) return false;
  const std::vector<ReplicaShape> deployment = candidate.arrangement.fixed.deployment;
  std::optional<Candidate> smaller = arrange(asked.on(deployment));
  if (!smaller || alike(smaller->arrangement.fixed, candidate.arrangement.fixed)) return false;
  candidate = std::move(*smaller);
  return fits(candidate, asked, Outlook::full);
}

std::vector<bool> Bench::fitting_ranks(std::span<const Bytes> peaks) const {
  std::vector<bool> fits;
  for (const Bytes peak : peaks) fits.push_back(capacity_ <= 0 || peak <= capacity_);
  return fits;
}

/// Whether what it always holds alone takes too much, and more than is missing of another plan.
bool Bench::is_hopeless(const FixedPlan& fixed, const workload::Workload& workload) const {
  if (misfit_.missing == 0) return false;
  const MemoryContext memory = memory_context(fixed, workload);
  Bytes held = 0;
  for (const costmodel::StageShape& stage : stage_shapes(fixed.deployment.front()))
    held = std::max(held, held_throughout(stage, memory, fixed.deployment.size() > 1).fixed());
  return held - capacity_ >= misfit_.missing;
}

bool Bench::fits(Candidate& candidate, const PolicyInput& asked, Outlook outlook) {
  Predictor predictor(candidate.arrangement.fixed, window_of(asked), outlook);
  return fits(candidate, predictor);
}

bool Bench::judge(Candidate& candidate, const PolicyInput& asked, Outlook outlook) {
  Predictor predictor(candidate.arrangement.fixed, window_of(asked), outlook);
  if (!fits(candidate, predictor)) return false;
  predictor.rates(latency_, input_.judge, candidate.prediction);
  return true;
}

bool Bench::fits(Candidate& candidate, Predictor& predictor) {
  ++laid_out_;
  candidate.prediction = {};
  predictor.memory(candidate.prediction);
  const std::vector<Bytes>& peaks = candidate.prediction.peak_memory_bytes;
  const auto most = std::max_element(peaks.begin(), peaks.end());
  if (capacity_ <= 0 || *most <= capacity_) return true;
  const Bytes missing = *most - capacity_;
  if (misfit_.missing == 0 || missing < misfit_.missing)
    misfit_ = {static_cast<std::int32_t>(most - peaks.begin()), missing, candidate.arrangement.fixed};
  return false;
}

void Bench::predict_rates(Candidate& candidate, Outlook outlook) {
  Predictor(candidate.arrangement.fixed, {input_.workload, input_.samples}, outlook)
      .rates(latency_, input_.judge, candidate.prediction);
}

}  // namespace braid::planner
