#pragma once

#include <limits>
#include <optional>

#include "planner/bound/best_rate.h"
#include "planner/plan/misfit.h"
#include "planner/plan/recomputation.h"
#include "planner/search/candidate.h"
#include "planner/search/planning_input.h"

namespace braid::planner {

/// The one place where plans of a policy are arranged and judged: whether they fit memory, which recomputation makes
/// them, and what a step takes. Keeps the nearest miss, and counts its work. Deterministic; not for concurrent use.
/// What it is made from must outlive it.
class Bench {
 public:
  /// What is asked of a plan at a glance: whether it fits, and what it is predicted to do, too.
  enum class Asked { memory, rates };

  Bench(const PlanningInput& input, const PolicyChoice& choice);

  const costmodel::CostModel& cost() const { return staged_ ? *staged_ : input_.cost; }
  ClockLatency& latency() { return latency_; }
  /// Of one rank; 0: not limited.
  Bytes capacity() const { return capacity_; }
  /// What was asked so far.
  BestRates& rates() { return rates_; }
  /// What came nearest to fitting of all that did not.
  const Misfit& misfit() const { return misfit_; }
  /// Plans whose memory was walked.
  std::int64_t laid_out() const { return laid_out_; }

  /// Whether it chooses how many layers are recomputed.
  bool chooses_layers() const { return recompute_.searches() && recompute_.of_layers; }

  /// The deployment with the recomputation that no plan of the policy goes without.
  std::vector<ReplicaShape> plain(std::vector<ReplicaShape> deployment) const;
  /// The whole workload on such a deployment.
  PolicyInput ask(const std::vector<ReplicaShape>& deployment, std::int64_t microbatches);

  /// The plans of a policy that proposes, not yet judged, given the grid of like replicas.
  std::vector<Candidate> propose(std::span<const std::vector<ReplicaShape>> deployments);

  /// The policy's plan on the deployment as it is, recomputation and all; nothing where the policy has none.
  std::optional<Candidate> arrange(const PolicyInput& asked) const;
  /// As above, of a plain deployment with the least recomputation with which the policy has a plan.
  std::optional<Candidate> arrange_any(const PolicyInput& asked) const;
  /// As Policy::sketch, likewise.
  std::optional<double> sketch(const PolicyInput& asked) const;

  /// A plan that fits at a glance, on a plain deployment; nothing where none fits. With as little recomputation as it
  /// can have; where its memory alone is asked for with as much, as what fits with less then fits too. A policy that
  /// launches as far ahead as memory allows may have taken too much; it is told how much, and asked again, up to
  /// `attempts` times. Of what has more memory than `most` the rates are not told.
  std::optional<Candidate> glance(const PolicyInput& asked, Asked what, Bytes most = std::numeric_limits<Bytes>::max(),
                                  int attempts = kAttempts);
  /// Whether a plan that fits at a glance does in full: else it is arranged anew, as `asked` for as much less memory as
  /// it misses, or recomputes more.
  bool fits_in_full(Candidate& candidate, const PolicyInput& asked);
  /// Whether a proposal fits in full as it is, or, where it recomputes, with more layers recomputed; what is asked for
  /// is predicted then.
  bool judge_proposal(Candidate& candidate, const PolicyInput& asked, Asked what);
  /// With as few recomputed layers as fit, of replicas that recompute any; nothing where all of theirs do not. Its
  /// memory is predicted.
  std::optional<Candidate> with_fewest_layers(Candidate candidate, const PolicyInput& asked, Outlook outlook);
  /// In the place of a plan that fits in full with all recomputation one with as little as does.
  void recompute_less(Candidate& candidate, const PolicyInput& asked);
  /// Predicts its memory; all else is forgotten.
  bool fits(Candidate& candidate, const PolicyInput& asked, Outlook outlook);
  /// Whether it fits; where it does all is predicted.
  bool judge(Candidate& candidate, const PolicyInput& asked, Outlook outlook);
  void predict_rates(Candidate& candidate, Outlook outlook = Outlook::full);

 private:
  static constexpr int kAttempts = 6;

  std::optional<Candidate> glance_as_is(PolicyInput asked, Asked what, Bytes most, int attempts);
  bool fits(Candidate& candidate, Predictor& predictor);
  bool fits_arranged_anew(Candidate& candidate, PolicyInput asked);
  std::vector<bool> fitting_ranks(std::span<const Bytes> peaks) const;
  bool is_hopeless(const FixedPlan& fixed, const workload::Workload& workload) const;
  /// The faster of the kinds from `least` on, each of as few layers as fit.
  std::optional<Candidate> with_least_recomputation(const Candidate& candidate, const PolicyInput& asked,
                                                    costmodel::RecomputeKind least, Outlook outlook);

  const PlanningInput& input_;
  const PolicyChoice& choice_;
  RecomputeChoice recompute_;
  std::optional<costmodel::CostModel> staged_;  // where messages go through the hosts
  ClockLatency latency_;
  BestRates rates_;
  Bytes capacity_;
  Misfit misfit_;
  std::int64_t laid_out_ = 0;
};

}  // namespace braid::planner
