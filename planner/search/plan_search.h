#pragma once

#include <limits>
#include <optional>

#include "planner/search/bench.h"

namespace braid::planner {

/// The deployments and microbatches that one policy has for a workload on a cluster, and which of them fit memory. Of
/// balanced splits only those that are not even: there may be none, and then no plan. Deterministic. What it is made
/// from must outlive it.
class PlanSearch {
 public:
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

  /// Lays out no more than about `most_laid_out` plans. Throws Error where overrides or options ask for what the ranks
  /// do not have.
  PlanSearch(const PlanningInput& input, const PolicyChoice& choice, std::int64_t most_laid_out = kUnlimited);

  /// Of the fastest few that fit the one whose full prediction takes the least time, with the reasons. Nothing where
  /// none fits: `misfit` says by how much then.
  std::optional<Candidate> fastest();

  /// As fastest, in a hurry: of a policy that proposes only the first few, which are the most promising, are
  /// predicted.
  std::optional<Candidate> about_fastest();

  /// As fastest, less what looks far slower than another search's plan did: nothing where all does.
  std::optional<Candidate> fastest_beside(const Looks& other);

  /// Under Preference::memory, after a search for the fastest: of all numbers of microbatches on every deployment
  /// (those of the grid, and quarters next to one that does not look far slower) whose full prediction takes at most
  /// `most_seconds` the plan whose fullest rank holds the least, of like ones the faster, of those the first. Nothing
  /// where `than`, which takes no longer, is that. Of a policy that sketches those alone whose sketches are not far off
  /// from that of `than`.
  std::optional<Candidate> leaner(double most_seconds, const Candidate& than);

  /// Arranges the plan for less and less memory, as long as it takes no more than `most_seconds` so: some policies have
  /// as much under way as memory holds.
  void tighten(double most_seconds, Candidate& candidate);

  /// The first that is found to fit, which may be far from the fastest; all that is sure to be predicted is its memory.
  /// There is one exactly where `fastest` finds one, unless the limit was reached.
  std::optional<Candidate> any();

  const Bench& bench() const { return bench_; }
  Bench& bench() { return bench_; }
  const PolicyChoice& choice() const { return choice_; }
  /// What was asked so far.
  BestRates& rates() { return bench_.rates(); }
  WindowInput window() const { return {input_.workload, input_.samples}; }
  const std::vector<std::vector<ReplicaShape>>& deployments() const { return deployments_; }

 private:
  struct Choice {
    std::vector<ReplicaShape> deployment;
    std::int64_t microbatches = 1;
    double sketched = 0;

    bool operator==(const Choice& other) const {
      return microbatches == other.microbatches && deployment == other.deployment;
    }
  };

  /// What a glance finds so much slower than the fastest that fits is not looked at in full.
  static constexpr double kFarOff = 1.08;

  void balance_deployments();
  std::vector<Choice> fullest_last() const;
  std::vector<Choice> best_sketches();
  double least_seconds(const Choice& choice);
  std::vector<std::int64_t> microbatch_counts(const std::vector<ReplicaShape>& deployment) const;
  std::vector<std::int64_t> counts_between(const Choice& choice) const;
  std::optional<Candidate> leanest_proposal(double most_seconds, const Candidate& than) const;
  std::vector<Candidate> not_far_slower(double most_seconds, const Candidate& than);
  bool fits_at_that_rate(double most_seconds, Candidate& candidate);
  void look_from_near(const std::vector<Choice>& counts, const std::function<bool(const Choice&)>& near,
                      double most_seconds, const Candidate& than);
  std::vector<Choice> worth_a_look(const std::vector<Choice>& choices, double most_seconds, const Candidate& than);
  void look_at(const std::vector<Choice>& choices, const Candidate& than);
  const std::optional<Candidate>* looked_at(const Choice& choice) const;
  void glance_at(const std::vector<Choice>& choices, std::vector<Candidate>& glanced);
  void glance_at_pipelines(const std::vector<Choice>& choices, std::vector<Candidate>& glanced);
  std::vector<Choice> best_deployments(const std::vector<Choice>& choices, const std::vector<Candidate>& glanced) const;
  bool takes_long(const FixedPlan& fixed) const;
  std::vector<Choice> between(const Choice& best, const std::vector<Candidate>& glanced);
  std::optional<Candidate> fastest_of(const std::vector<Choice>& choices);
  /// Of a policy's proposals: the fastest, or the first, that fits.
  std::vector<Candidate> worth_predicting(std::vector<Candidate> proposals);
  std::optional<Candidate> best_proposal(Bench::Asked what);
  void recompute_less(std::vector<Candidate>& proposals);
  std::optional<Candidate> first_that_fits();
  void miss_with_tasks_alone();
  void explain(std::vector<Candidate>& examined, std::size_t fitting) const;

  PolicyInput policy_input(const Choice& choice);

  const PlanningInput& input_;
  const PolicyChoice& choice_;
  Bench bench_;
  std::vector<std::vector<ReplicaShape>> deployments_;
  bool stages_alone_;  // no replicas, so that ranks may stay idle
  std::size_t arranged_;
  std::int64_t most_laid_out_;
  Looks most_;  // what looks slower is far off
  /// What a glance saw, nothing where nothing fits; for Preference::memory alone.
  std::vector<std::pair<Choice, std::optional<Candidate>>> looked_at_;
  std::vector<Candidate> proposed_;  // that fit, of a policy that proposes
  bool sketches_ = false;            // the policy does
  bool hurries_ = false;             // few proposals will do
  bool left_out_ = false;            // some of the grid, as too slow
  std::int64_t tried_ = 0;           // of the grid
  std::int64_t glanced_at_ = 0;
};

}  // namespace braid::planner
