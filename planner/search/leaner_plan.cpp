#include <algorithm>
#include <cmath>
#include <queue>
#include <tuple>

#include "planner/bound/policy_bound.h"
#include "planner/search/plan_search.h"

namespace braid::planner {
namespace {

/// Plans are arranged for so much of the memory that they take, again and again.
constexpr double kTighter = 0.75;

/// How far a plan was looked at: its memory at a glance is no more than in full, and in full takes the longest to tell.
enum class Seen { glance, rates, memory };

/// A plan in the queue for the least memory.
struct Queued {
  Bytes fullest = 0;
  Seen seen = Seen::glance;
  double step_seconds = 0;
  std::size_t place = 0;

  /// What is not known comes first, so that of like plans all are known before one is taken.
  auto order() const { return std::tuple(fullest, seen, step_seconds, place); }
  bool operator>(const Queued& other) const { return order() > other.order(); }
};

bool arranged_alike(const FixedPlan& a, const FixedPlan& b) {
  return a.deployment == b.deployment && a.batching.microbatches == b.batching.microbatches &&
         a.schedule.order == b.schedule.order && a.htasks == b.htasks && a.schedule.turns == b.schedule.turns &&
         a.schedule.admissions == b.schedule.admissions && a.schedule.transfer_share == b.schedule.transfer_share;
}

void forget_rates(Prediction& prediction) {
  Prediction memory;
  memory.peak_memory_bytes = std::move(prediction.peak_memory_bytes);
  memory.held_memory_bytes = std::move(prediction.held_memory_bytes);
  prediction = std::move(memory);
}

}  // namespace

std::optional<Candidate> PlanSearch::leanest_proposal(double most_seconds, const Candidate& than) const {
  const Candidate* leanest = &than;
  for (const Candidate& proposed : proposed_) {
    if (proposed.prediction.step_seconds <= most_seconds && proposed.fullest() < leanest->fullest())
      leanest = &proposed;
  }
  return leanest == &than ? std::nullopt : std::optional(*leanest);
}

std::optional<Candidate> PlanSearch::leaner(double most_seconds, const Candidate& than) {
  if (choice_.policy->proposes()) return leanest_proposal(most_seconds, than);
  std::vector<Candidate> candidates = not_far_slower(most_seconds, than);
  const auto order = [](const Candidate& candidate) {
    return std::pair(candidate.fullest(), candidate.prediction.step_seconds);
  };
  std::priority_queue<Queued, std::vector<Queued>, std::greater<>> queue;
  const auto add = [&](Seen seen, std::size_t place) {
    const Candidate& candidate = candidates[place];
    if (candidate.fullest() <= than.fullest())
      queue.push({candidate.fullest(), seen, candidate.prediction.step_seconds, place});
  };
  for (std::size_t place = 0; place < candidates.size(); ++place) {
    if (!arranged_alike(candidates[place].arrangement.fixed, than.arrangement.fixed)) add(Seen::glance, place);
  }
  while (!queue.empty()) {
    const Queued next = queue.top();
    queue.pop();
    Candidate& candidate = candidates[next.place];
    switch (next.seen) {
      case Seen::glance:
        forget_rates(candidate.prediction);
        bench_.predict_rates(candidate);
        if (candidate.prediction.step_seconds <= most_seconds) add(Seen::rates, next.place);
        break;
      case Seen::rates:
        if (fits_at_that_rate(most_seconds, candidate)) add(Seen::memory, next.place);
        break;
      case Seen::memory:
        if (order(candidate) >= order(than)) return std::nullopt;
        return std::move(candidate);
    }
  }
  return std::nullopt;
}

/// As fits_in_full, of a plan whose rates are known; what is arranged anew may not take longer than `most_seconds`.
bool PlanSearch::fits_at_that_rate(double most_seconds, Candidate& candidate) {
  const Candidate rated = candidate;
  const FixedPlan& fixed = rated.arrangement.fixed;
  if (!bench_.fits_in_full(candidate, policy_input({fixed.deployment, fixed.batching.microbatches, 0}))) return false;
  candidate.looks = rated.looks;
  if (!arranged_alike(candidate.arrangement.fixed, fixed)) {
    bench_.predict_rates(candidate);
    return candidate.prediction.step_seconds <= most_seconds;
  }
  Prediction whole = rated.prediction;
  whole.peak_memory_bytes = std::move(candidate.prediction.peak_memory_bytes);
  whole.held_memory_bytes = std::move(candidate.prediction.held_memory_bytes);
  candidate.prediction = std::move(whole);
  return true;
}

/// Every plan with no more memory than `than` that does not look far slower than it, deployment by deployment: of
/// numbers of microbatches on the grid, and of those between that are next to one which does not.
std::vector<Candidate> PlanSearch::not_far_slower(double most_seconds, const Candidate& than) {
  const double far = kFarOff * than.looks.glanced;
  const auto near = [&](const Choice& choice) {
    const std::optional<Candidate>* seen = looked_at(choice);
    return seen && *seen && (*seen)->looks.glanced <= far;
  };
  std::vector<Choice> grid, between;
  for (const auto& deployment : deployments_) {
    std::vector<Choice> counts;
    for (const std::int64_t count : microbatch_counts(deployment)) counts.push_back({deployment, count, 0});
    look_from_near(counts, near, most_seconds, than);
    for (const Choice& choice : counts) {
      if (!near(choice)) continue;
      for (const std::int64_t count : counts_between(choice)) {
        Choice other{deployment, count, 0};
        if (std::find(between.begin(), between.end(), other) == between.end()) between.push_back(std::move(other));
      }
    }
    grid.insert(grid.end(), counts.begin(), counts.end());
  }
  look_at(worth_a_look(between, most_seconds, than), than);
  std::vector<Candidate> found;
  for (const std::vector<Choice>* choices : {&grid, &between}) {
    for (const Choice& choice : *choices) {
      if (near(choice)) found.push_back(**looked_at(choice));
    }
  }
  return found;
}

/// Of the grid's choices on one deployment what the search for the fastest left out: all where it left out all, else
/// what is next to one that is near, for as long as there is more of it.
void PlanSearch::look_from_near(const std::vector<Choice>& counts, const std::function<bool(const Choice&)>& near,
                                double most_seconds, const Candidate& than) {
  const bool left_out_all = std::none_of(counts.begin(), counts.end(), [&](const Choice& c) { return looked_at(c); });
  for (std::vector<bool> asked(counts.size(), false);;) {
    std::vector<Choice> more;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const bool beside = (i > 0 && near(counts[i - 1])) || (i + 1 < counts.size() && near(counts[i + 1]));
      if (asked[i] || looked_at(counts[i]) || !(left_out_all || beside)) continue;
      asked[i] = true;
      more.push_back(counts[i]);
    }
    if (more.empty()) return;
    look_at(worth_a_look(more, most_seconds, than), than);
  }
}

/// Those of the choices not yet looked at that a lower bound lets take no longer; of a policy that sketches those whose
/// sketches are not far off, of which as many as are arranged at first.
std::vector<PlanSearch::Choice> PlanSearch::worth_a_look(const std::vector<Choice>& choices, double most_seconds,
                                                         const Candidate& than) {
  const auto least = [&](const Choice& choice) {
    if (!sketches_) return least_seconds(choice);
    // Arranging takes long, and what such a policy may choose from is the same everywhere.
    BoundScope scope = bound_scope(than.arrangement, {.tp = {}, .pp = {}, .microbatches = choice.microbatches});
    scope.deployment = choice.deployment;
    return lower_bound(scope, window(), bench_.cost(), bench_.rates()).step_seconds;
  };
  std::vector<Choice> worth;
  for (const Choice& choice : choices) {
    if (looked_at(choice) || least(choice) > most_seconds) continue;
    worth.push_back(choice);
    if (!sketches_) continue;
    PolicyInput asked = policy_input(choice);
    asked.sketch_limit = kFarOff * than.looks.sketched;
    worth.back().sketched = bench_.sketch(asked).value_or(0);
    if (std::isinf(worth.back().sketched) || worth.back().sketched > asked.sketch_limit) worth.pop_back();
  }
  std::stable_sort(worth.begin(), worth.end(),
                   [](const Choice& a, const Choice& b) { return a.sketched < b.sketched; });
  if (sketches_ && worth.size() > arranged_) worth.resize(arranged_);
  return worth;
}

/// At a glance; at the rates of those alone that have no more memory than `than`.
void PlanSearch::look_at(const std::vector<Choice>& choices, const Candidate& than) {
  for (const Choice& choice : choices) {
    std::optional<Candidate> candidate = bench_.glance(policy_input(choice), Bench::Asked::rates, than.fullest());
    if (candidate && candidate->fullest() > than.fullest()) candidate.reset();
    if (candidate) candidate->looks = {choice.sketched, candidate->prediction.step_seconds};
    looked_at_.emplace_back(choice, std::move(candidate));
  }
}

const std::optional<Candidate>* PlanSearch::looked_at(const Choice& choice) const {
  for (const auto& [known, candidate] : looked_at_) {
    if (known.microbatches == choice.microbatches && same_places(known.deployment, choice.deployment))
      return &candidate;
  }
  return nullptr;
}

void PlanSearch::tighten(double most_seconds, Candidate& candidate) {
  if (choice_.policy->proposes()) return;
  const FixedPlan& fixed = candidate.arrangement.fixed;
  const Choice choice{fixed.deployment, fixed.batching.microbatches, 0};
  const auto of = [](Bytes bytes) { return static_cast<Bytes>(kTighter * static_cast<double>(bytes)); };
  for (Bytes capacity = of(candidate.fullest()); capacity > 0; capacity = of(capacity)) {
    PolicyInput asked = policy_input(choice);
    asked.capacity = capacity;
    std::optional<Candidate> tighter = bench_.arrange(asked);
    if (!tighter || arranged_alike(tighter->arrangement.fixed, fixed)) return;
    if (!bench_.fits(*tighter, asked, Outlook::full) || tighter->fullest() >= candidate.fullest()) return;
    bench_.predict_rates(*tighter);
    if (tighter->prediction.step_seconds > most_seconds) return;
    tighter->looks = candidate.looks;
    candidate = std::move(*tighter);
  }
}

}  // namespace braid::planner
