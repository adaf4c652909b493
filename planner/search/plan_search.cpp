#include "planner/search/plan_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "base/error.h"
#include "planner/bound/policy_bound.h"
#include "planner/plan/balanced_layers.h"
#include "planner/policies/common_options.h"
#include "planner/search/asked.h"
#include "planner/search/make_plan.h"
#include "planner/window/unit_stream.h"

namespace braid::planner {
namespace {

/// The fastest candidates of a glance that are looked at in full, and how many of all.
constexpr std::size_t kExamined = 3, kMostExamined = 12;
/// Proposals of a stream look further from what they are, as the few steps of a glance are told by their borders.
constexpr double kFarOffProposed = 1.25;
constexpr std::size_t kMostProposed = 20, kFewProposed = 6;
/// One of so many parts of the memory more is what a policy is asked to arrange for that arranges nothing.
constexpr Bytes kLittleMore = 32;
/// The best sketches that are arranged: up to so many tasks' worth.
constexpr std::size_t kLeastArranged = 6, kMostArranged = 24, kTasksArranged = 128;

/// A number of microbatches, and quarters between it and the next power of two.
std::array<std::int64_t, 5> and_quarters(std::int64_t count) {
  return {count * 3 / 4, count, count * 5 / 4, count * 6 / 4, count * 7 / 4};
}

}  // namespace

PlanSearch::PlanSearch(const PlanningInput& input, const PolicyChoice& choice, std::int64_t most_laid_out)
    : input_(input),
      choice_(choice),
      bench_(checked(input, choice), choice),
      deployments_(planner::deployments(input.workload, input.cluster, input.overrides,
                                        searched_parallelism(input.cluster, input.overrides, choice))),
      stages_alone_(!searched_parallelism(input.cluster, input.overrides, choice).data),
      arranged_(std::clamp(kTasksArranged / input.workload.tasks.size(), kLeastArranged, kMostArranged)),
      most_laid_out_(most_laid_out) {
  if (input.overrides.split.kind == LayerSplit::Kind::balanced) balance_deployments();
  for (std::vector<ReplicaShape>& deployment : deployments_) deployment = bench_.plain(std::move(deployment));
}

/// 1, 2, 4, ... up to one sample a microbatch; of counts that give a deployment as many parts, the first.
std::vector<std::int64_t> PlanSearch::microbatch_counts(const std::vector<ReplicaShape>& deployment) const {
  const std::int64_t most = largest_batch(input_.workload);
  if (input_.overrides.microbatches) return {*input_.overrides.microbatches};
  std::vector<std::int64_t> counts = {1};
  const auto replicas = static_cast<std::int64_t>(deployment.size());
  while (counts.back() * replicas < most) counts.push_back(std::min(counts.back() * 2, most));
  return counts;
}

/// In place of each pipeline with its layers split evenly: balanced for its largest microbatches, and for its smallest.
void PlanSearch::balance_deployments() {
  std::vector<std::vector<ReplicaShape>> grid;
  for (const std::vector<ReplicaShape>& even : deployments_) {
    const std::int64_t layers = input_.workload.backbone.layers, stages = even.front().stages();
    if (stages == 1 || even.front().model_chunks > 1) continue;
    const std::vector<std::int64_t> counts = microbatch_counts(even);
    for (const std::int64_t microbatches : {counts.front(), counts.back()}) {
      const PassCosts costs = pass_costs(policy_input({even, microbatches, 0}));
      const std::vector<std::int64_t> split = choice_.policy->passes_apart()
                                                  ? balanced_passes(layers, stages, costs)
                                                  : balanced_layers(layers, stages, costs.forward + costs.backward);
      std::vector<ReplicaShape> balanced = even;
      for (ReplicaShape& replica : balanced) replica.layers = layer_ranges(split);
      if (balanced != even && (grid.empty() || grid.back() != balanced)) grid.push_back(std::move(balanced));
    }
  }
  deployments_ = std::move(grid);
}

/// Of many proposals those that are not far slower than the fastest at a glance, and fit at one; the fastest first.
std::vector<Candidate> PlanSearch::worth_predicting(std::vector<Candidate> proposals) {
  if (hurries_ && proposals.size() > kFewProposed) proposals.erase(proposals.begin() + kFewProposed, proposals.end());
  if (proposals.size() <= kMostProposed) return proposals;
  double fastest = most_.glanced / kFarOff;
  std::vector<Candidate> fitting;
  for (Candidate& candidate : proposals) {
    const FixedPlan& fixed = candidate.arrangement.fixed;
    if (!bench_.judge(candidate, bench_.ask(fixed.deployment, fixed.batching.microbatches), Outlook::glance)) continue;
    candidate.looks.glanced = candidate.prediction.step_seconds;
    fastest = std::min(fastest, candidate.looks.glanced);
    fitting.push_back(std::move(candidate));
  }
  std::erase_if(fitting, [&](const Candidate& one) { return one.looks.glanced > kFarOffProposed * fastest; });
  std::stable_sort(fitting.begin(), fitting.end(),
                   [](const Candidate& a, const Candidate& b) { return a.looks.glanced < b.looks.glanced; });
  if (fitting.size() > kMostProposed) fitting.resize(kMostProposed);
  return fitting;
}

std::optional<Candidate> PlanSearch::best_proposal(Bench::Asked what) {
  std::vector<Candidate> fitting;
  for (Candidate& candidate : worth_predicting(bench_.propose(deployments_))) {
    ++tried_;
    const FixedPlan& fixed = candidate.arrangement.fixed;
    const PolicyInput asked = bench_.ask(fixed.deployment, fixed.batching.microbatches);
    if (!bench_.judge_proposal(candidate, asked, what)) continue;
    if (what == Bench::Asked::memory) return std::move(candidate);
    candidate.looks.glanced = candidate.prediction.step_seconds;
    fitting.push_back(std::move(candidate));
  }
  if (fitting.empty()) return std::nullopt;
  std::stable_sort(fitting.begin(), fitting.end(), faster);
  recompute_less(fitting);
  explain(fitting, fitting.size());
  proposed_ = std::move(fitting);
  return proposed_.front();
}

/// Of the fastest, which may then be another.
void PlanSearch::recompute_less(std::vector<Candidate>& proposals) {
  if (!bench_.chooses_layers()) return;
  const std::size_t most = takes_long(proposals.front().arrangement.fixed) ? 1 : kExamined;
  for (std::size_t i = 0; i < std::min(most, proposals.size()); ++i) {
    const FixedPlan& fixed = proposals[i].arrangement.fixed;
    if (!recomputes(fixed.deployment)) continue;
    std::optional<Candidate> leaner = bench_.with_fewest_layers(
        proposals[i], bench_.ask(fixed.deployment, fixed.batching.microbatches), Outlook::full);
    if (!leaner) continue;
    bench_.predict_rates(*leaner);
    if (faster(*leaner, proposals[i])) proposals[i] = std::move(*leaner);
  }
  std::stable_sort(proposals.begin(), proposals.end(), faster);
}

std::optional<Candidate> PlanSearch::fastest_beside(const Looks& other) {
  most_ = {kFarOff * other.sketched, kFarOff * other.glanced};
  if (choice_.policy->proposes()) return fastest();
  return fastest_of(best_sketches());
}

std::optional<Candidate> PlanSearch::fastest() {
  if (choice_.policy->proposes()) return best_proposal(Bench::Asked::rates);
  if (deployments_.empty()) return std::nullopt;
  std::optional<Candidate> best = fastest_of(best_sketches());
  const bool arranged_some = bench_.misfit().missing > 0;
  // Where not all was arranged, the fastest may be the fullest: what fits at a glance may not fit in full.
  if (best || (arranged_some && !sketches_ && !left_out_)) return best;
  best = first_that_fits();
  if (!best && !arranged_some) miss_with_tasks_alone();
  if (!best) return std::nullopt;
  const FixedPlan& fixed = best->arrangement.fixed;
  bench_.recompute_less(*best, policy_input({bench_.plain(fixed.deployment), fixed.batching.microbatches, 0}));
  bench_.predict_rates(*best);
  std::vector<Candidate> alone = {std::move(*best)};
  explain(alone, 1);
  return std::move(alone.front());
}

std::optional<Candidate> PlanSearch::about_fastest() {
  hurries_ = true;
  return fastest();
}

std::optional<Candidate> PlanSearch::any() {
  if (choice_.policy->proposes()) return best_proposal(Bench::Asked::memory);
  if (deployments_.empty()) return std::nullopt;
  std::optional<Candidate> found = first_that_fits();
  if (found || bench_.laid_out() >= most_laid_out_) return found;
  // A policy that sketches was in a hurry: what it arranges at leisure may be smaller.
  const std::vector<Choice> best = best_sketches();
  return sketches_ ? fastest_of(best) : std::nullopt;
}

/// Takes the fullest last, and the first arrangement that the policy has.
std::optional<Candidate> PlanSearch::first_that_fits() {
  const auto find = [&](const Choice& choice, Bytes capacity) -> std::optional<Candidate> {
    PolicyInput asked = policy_input(choice);
    asked.hurries = true;
    asked.capacity = capacity;
    std::optional<Candidate> candidate = bench_.glance(asked, Bench::Asked::memory);
    if (!candidate || !bench_.fits_in_full(*candidate, policy_input(choice))) return std::nullopt;
    return candidate;
  };
  const std::vector<Choice> choices = fullest_last();
  for (const Choice& choice : choices) {
    if (bench_.laid_out() >= most_laid_out_) return std::nullopt;
    if (auto found = find(choice, bench_.capacity())) return found;
  }
  // A policy takes plans for larger than they are. Where it arranges nothing, what it arranges for a little more memory
  // may fit all the same, and says else by how much it does not.
  constexpr Bytes kEnough = std::numeric_limits<Bytes>::max() / 4;
  for (Bytes more = bench_.capacity() / kLittleMore + 1; bench_.misfit().missing == 0 && more < kEnough; more *= 2) {
    if (auto found = find(choices.front(), bench_.capacity() + more)) return found;
  }
  return std::nullopt;
}

/// What every task by itself would miss by in the smallest microbatches: for more memory than there is a policy may
/// arrange what is far from fitting.
void PlanSearch::miss_with_tasks_alone() {
  const Choice choice = fullest_last().front();
  Candidate alone;
  FixedPlan& fixed = alone.arrangement.fixed;
  one_task_per_htask(static_cast<std::int32_t>(input_.workload.tasks.size()), fixed);
  fixed.deployment = choice.deployment;
  fixed.batching.microbatches = choice.microbatches;
  fixed.batching.padding = Padding::max_length;
  fixed.storage = bench_.cost().storage();
  bench_.fits(alone, policy_input(choice), Outlook::glance);
}

/// Every deployment with every number of microbatches. What fits where anything does comes first, as a rule: the
/// smallest microbatches, and of those the deployments with the least of the weights on a rank.
std::vector<PlanSearch::Choice> PlanSearch::fullest_last() const {
  std::vector<std::pair<std::pair<std::size_t, std::int32_t>, Choice>> places;
  for (const auto& deployment : deployments_) {
    const std::vector<std::int64_t> counts = microbatch_counts(deployment);
    const ReplicaShape& replica = deployment.front();
    for (std::size_t i = 0; i < counts.size(); ++i)
      places.push_back({{counts.size() - i, -replica.tp * replica.stages()}, {deployment, counts[i], 0}});
  }
  std::stable_sort(places.begin(), places.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Choice> choices;
  choices.reserve(places.size());
  for (auto& [place, choice] : places) choices.push_back(std::move(choice));
  return choices;
}

/// Where the policy sketches, the best of the grid; else all of it.
std::vector<PlanSearch::Choice> PlanSearch::best_sketches() {
  std::vector<Choice> choices;
  std::multiset<double> best;
  for (const auto& deployment : deployments_) {
    for (const std::int64_t microbatches : microbatch_counts(deployment)) {
      ++tried_;
      Choice choice{deployment, microbatches, 0};
      PolicyInput asked = policy_input(choice);
      asked.sketch_limit = best.size() < arranged_ ? most_.sketched : std::min(most_.sketched, *best.rbegin());
      if (const std::optional<double> sketched = bench_.sketch(asked)) {
        sketches_ = true;
        if (std::isinf(*sketched) || *sketched > most_.sketched) continue;
        choice.sketched = *sketched;
        best.insert(*sketched);
        if (best.size() > arranged_) best.erase(std::prev(best.end()));
      }
      choices.push_back(std::move(choice));
    }
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& a, const Choice& b) { return a.sketched < b.sketched; });
  if (sketches_ && choices.size() > arranged_) choices.resize(arranged_);
  return choices;
}

/// What no plan of this choice is faster than; infinity where the policy has none.
double PlanSearch::least_seconds(const Choice& choice) {
  const std::optional<Candidate> candidate = bench_.arrange_any(policy_input(choice));
  if (!candidate) return std::numeric_limits<double>::infinity();
  BoundScope scope = bound_scope(candidate->arrangement, {.tp = {}, .pp = {}, .microbatches = choice.microbatches});
  scope.deployment = choice.deployment;
  return lower_bound(scope, window(), bench_.cost(), bench_.rates()).step_seconds;
}

/// Adds what fits memory, the fastest by a glance first. Where the policy does not sketch, the choices that may be
/// fastest come first, and those that cannot be near the fastest are not laid out.
void PlanSearch::glance_at(const std::vector<Choice>& choices, std::vector<Candidate>& glanced) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < choices.size(); ++i) order.emplace_back(sketches_ ? 0 : least_seconds(choices[i]), i);
  std::sort(order.begin(), order.end());
  double most = most_.glanced;
  if (!glanced.empty()) most = std::min(most, kFarOff * glanced.front().looks.glanced);
  std::vector<std::optional<Candidate>> found(choices.size());
  for (const auto& [least, i] : order) {
    if (least > most) {
      left_out_ = true;
      break;
    }
    found[i] = bench_.glance(policy_input(choices[i]), Bench::Asked::rates);
    ++glanced_at_;
    // What is left after the grid takes about as long as a quarter of it.
    if (input_.on_progress) input_.on_progress(0.8 * static_cast<double>(glanced_at_) / static_cast<double>(tried_));
    if (found[i]) found[i]->looks = {choices[i].sketched, found[i]->prediction.step_seconds};
    if (input_.preference == Preference::memory) looked_at_.emplace_back(choices[i], found[i]);
    if (!found[i]) continue;
    most = std::min(most, kFarOff * found[i]->looks.glanced);
  }
  for (std::optional<Candidate>& candidate : found) {
    if (candidate) glanced.push_back(std::move(*candidate));
  }
  std::stable_sort(glanced.begin(), glanced.end(), faster);
}

/// As glance_at. Of a system that may leave ranks idle the deepest pipeline first, with every number of microbatches;
/// each shallower one with about as many as were best on the one before, or fewer where no stage waits for another.
void PlanSearch::glance_at_pipelines(const std::vector<Choice>& choices, std::vector<Candidate>& glanced) {
  std::int64_t best = 0;
  for (auto deployment = deployments_.rbegin(); deployment != deployments_.rend(); ++deployment) {
    std::vector<Choice> here;
    for (const Choice& choice : choices) {
      if (choice.deployment != *deployment) continue;
      const bool few = choice.microbatches * 2 < best && deployment->front().stages() > 1;
      const bool near = best == 0 || (choice.microbatches <= best * 2 && !few);
      if (near) here.push_back(choice);
      left_out_ = left_out_ || !near;
    }
    glance_at(here, glanced);
    for (const Candidate& candidate : glanced) {  // the fastest first
      const FixedPlan& fixed = candidate.arrangement.fixed;
      if (!same_places(fixed.deployment, *deployment)) continue;
      best = fixed.batching.microbatches;
      break;
    }
  }
}

/// The best choices of a few deployments; of one alone where laying out takes long.
std::vector<PlanSearch::Choice> PlanSearch::best_deployments(const std::vector<Choice>& choices,
                                                             const std::vector<Candidate>& glanced) const {
  std::vector<Choice> best;
  for (const Candidate& candidate : glanced) {
    const FixedPlan& fixed = candidate.arrangement.fixed;
    if (best.size() == (takes_long(fixed) ? 1 : kExamined)) break;
    if (candidate.prediction.step_seconds > kFarOff * glanced.front().prediction.step_seconds) break;
    const auto has = [&](const Choice& choice) { return same_places(choice.deployment, fixed.deployment); };
    if (std::any_of(best.begin(), best.end(), has)) continue;
    best.push_back(*std::find_if(choices.begin(), choices.end(), [&](const Choice& choice) {
      return choice.microbatches == fixed.batching.microbatches && has(choice);
    }));
  }
  return best;
}

/// For a stream, or a policy that sketches, to lay out or to arrange.
bool PlanSearch::takes_long(const FixedPlan& fixed) const {
  return sketches_ || streams(fixed);
}

/// Numbers of microbatches that were not glanced at on the best deployment: quarters between the grid's powers of two,
/// and those; where that takes long those next to the best.
std::vector<PlanSearch::Choice> PlanSearch::between(const Choice& best, const std::vector<Candidate>& glanced) {
  std::vector<Choice> choices;
  if (input_.overrides.microbatches) return choices;
  const std::vector<std::int64_t> grid = microbatch_counts(best.deployment);
  std::set<std::int64_t> counts;
  for (const std::int64_t count :
       takes_long(glanced.front().arrangement.fixed) ? std::vector<std::int64_t>{best.microbatches} : grid) {
    for (const std::int64_t near : and_quarters(count)) counts.insert(near);
  }
  for (const Candidate& candidate : glanced) {
    const FixedPlan& fixed = candidate.arrangement.fixed;
    if (same_places(fixed.deployment, best.deployment)) counts.erase(fixed.batching.microbatches);
  }
  for (const std::int64_t count : counts) {
    if (count < 1 || count > grid.back()) continue;
    ++tried_;
    Choice choice{best.deployment, count, 0};
    if (sketches_) {
      PolicyInput asked = policy_input(choice);
      asked.sketch_limit = best.sketched;
      choice.sketched = bench_.sketch(asked).value_or(0);
      if (choice.sketched >= best.sketched) continue;
    }
    choices.push_back(std::move(choice));
  }
  return choices;
}

/// Quarters between its number of microbatches and the powers of two next to it.
std::vector<std::int64_t> PlanSearch::counts_between(const Choice& choice) const {
  std::vector<std::int64_t> counts;
  if (input_.overrides.microbatches) return counts;
  const std::int64_t most = microbatch_counts(choice.deployment).back();
  for (const std::int64_t near : and_quarters(choice.microbatches)) {
    if (near >= 1 && near <= most && near != choice.microbatches) counts.push_back(near);
  }
  return counts;
}

std::optional<Candidate> PlanSearch::fastest_of(const std::vector<Choice>& choices) {
  std::vector<Candidate> glanced;
  if (!sketches_ && stages_alone_) {
    glance_at_pipelines(choices, glanced);
  } else {
    glance_at(choices, glanced);
  }
  std::vector<Choice> more;
  for (const Choice& best : best_deployments(choices, glanced)) {
    const std::vector<Choice> others = between(best, glanced);
    more.insert(more.end(), others.begin(), others.end());
  }
  glance_at(more, glanced);
  // Those that had to be arranged anew, and came out far slower than they looked, say nothing of the ones behind them.
  std::vector<Candidate> examined;
  std::size_t as_they_looked = 0;
  double most = most_.glanced;
  for (Candidate& candidate : glanced) {
    if (as_they_looked == kExamined || examined.size() == kMostExamined) break;
    const Looks looks = candidate.looks;
    if (looks.glanced > most) break;
    const FixedPlan& fixed = candidate.arrangement.fixed;
    const Choice choice{fixed.deployment, fixed.batching.microbatches, 0};
    if (!bench_.fits_in_full(candidate, policy_input(choice))) continue;
    bench_.predict_rates(candidate);
    candidate.looks = looks;
    if (candidate.prediction.step_seconds <= kFarOff * looks.glanced && ++as_they_looked == 1)
      most = std::min(most, kFarOff * looks.glanced);
    examined.push_back(std::move(candidate));
  }
  if (examined.empty()) return std::nullopt;
  std::stable_sort(examined.begin(), examined.end(), faster);
  explain(examined, glanced.size());
  return std::move(examined.front());
}

/// Why it is the first's deployment, in front of why the policy arranged it so.
void PlanSearch::explain(std::vector<Candidate>& examined, std::size_t fitting) const {
  const auto described = [](const Candidate& candidate) {
    const FixedPlan& fixed = candidate.arrangement.fixed;
    return fmt::format("{}, {}", describe(fixed.deployment), describe_microbatches(fixed));
  };
  std::string reason =
      fmt::format("{}: of {} {}, {} {} laid out and fit memory", described(examined.front()), tried_,
                  choice_.policy->proposes() ? "proposed" : "on the grid", fitting, fitting == 1 ? "was" : "were");
  if (examined.size() > 1) {
    const double slower = examined[1].prediction.step_seconds / examined[0].prediction.step_seconds - 1;
    reason += fmt::format("; the next best, {}, takes {:.1f} % longer", described(examined[1]), 100 * slower);
  }
  std::vector<std::string>& reasons = examined.front().arrangement.reasons;
  reasons.insert(reasons.begin(), reason);
}

PolicyInput PlanSearch::policy_input(const Choice& choice) {
  return bench_.ask(choice.deployment, choice.microbatches);
}

}  // namespace braid::planner
