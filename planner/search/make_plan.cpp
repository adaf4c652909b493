#include "planner/search/make_plan.h"

#include <deque>

#include "base/error.h"
#include "base/steady_clock.h"
#include "planner/bound/policy_bound.h"
#include "planner/plan/head_tail_groups.h"
#include "planner/plan/plan_hashes.h"
#include "planner/policies/common_options.h"
#include "planner/search/plan_search.h"
#include "planner/search/refine_bins.h"
#include "planner/search/remedy.h"
#include "planner/search/reproducible.h"
#include "planner/search/step_models.h"
#include "planner/search/ways.h"
#include "planner/window/program_stream.h"
#include "planner/window/run_memory.h"

namespace braid::planner {
namespace {

void verify_telling_windows(const FixedPlan& fixed, const WindowInput& window, Bytes capacity) {
  const VerifyContext rules = verify_context(fixed, window, capacity);
  for (const std::int64_t telling : run_memory(fixed, window).telling_windows) {
    for (const Program& program : programs_around(fixed, window, telling)) {
      const std::vector<Violation> violations = verify(program, rules);
      BRAID_CHECK(violations.empty(), "window {} of the plan breaks the rule '{}': {}", telling,
                  name(violations[0].rule), violations[0].message);
    }
  }
}

/// Of other splits.
std::string slower(const Candidate& other, const Candidate& best) {
  return fmt::format(
      "even splits and balanced ones were searched: the fastest of the others, {}, takes {:.1f} % longer",
      describe(other.arrangement.fixed.deployment),
      100 * (other.prediction.step_seconds / best.prediction.step_seconds - 1));
}

const Misfit& nearest_misfit(const std::deque<PlanSearch>& searches) {
  const Misfit* nearest = &searches.front().bench().misfit();
  for (const PlanSearch& search : searches) {
    const Misfit& misfit = search.bench().misfit();
    if (misfit.missing > 0 && (nearest->missing == 0 || misfit.missing < nearest->missing)) nearest = &misfit;
  }
  return *nearest;
}

/// Puts what has the least memory of all that is nearly as fast in the place of the fastest. Returns the search that it
/// is of.
PlanSearch* take_least_memory(std::deque<PlanSearch>& searches, PlanSearch* found, const Preferred& fastest,
                              Candidate& best) {
  const double most = kNearlyAsFast * fastest.fastest_step_seconds;
  for (PlanSearch& search : searches) {
    std::optional<Candidate> leaner = search.leaner(most, best);
    if (!leaner) continue;
    best = std::move(*leaner);
    found = &search;
  }
  found->tighten(most, best);
  const FixedPlan& fixed = best.arrangement.fixed;
  best.arrangement.reasons.insert(best.arrangement.reasons.begin(),
                                  fmt::format("{}, {}: {}", describe(fixed.deployment), describe_microbatches(fixed),
                                              describe(fastest, best.prediction)));
  return found;
}

/// "task 'a': sample 17 of 9,000 tokens fits no replica": of all tasks the longest.
std::string longest_sample(const PlanningInput& input) {
  std::string text;
  std::int64_t longest = 0;
  for (std::size_t t = 0; t < input.workload.tasks.size(); ++t) {
    const std::vector<workload::SampleSize>& sizes = input.samples.sizes(static_cast<int>(t));
    for (std::size_t sample = 0; sample < sizes.size(); ++sample) {
      if (sizes[sample].tokens <= longest) continue;
      longest = sizes[sample].tokens;
      text = fmt::format("task '{}': sample {} of {} tokens fits no replica", input.workload.tasks[t].name, sample,
                         longest);
    }
  }
  return text;
}

/// Whether the work alone of rows as they are padded there takes too long.
bool cannot_be_faster(const Way& way, const PlanningInput& input, PlanSearch& known, double seconds) {
  using costmodel::AdapterKernels;
  std::string_view kernels = "auto", padding = "none";
  bool skips = false;
  for (const auto& [option, value] : way.choice.options) {
    if (option == "kernels") kernels = value;
    if (option == "pad_to") padding = value;
    if (option == "padding" && value == "skipped") skips = true;
  }
  std::vector<AdapterKernels> run;
  if (kernels != "fused") run.push_back(AdapterKernels::separate);
  if (kernels != "separate" && !input.cost.profile().device.empty()) run.push_back(AdapterKernels::fused);
  const Padding least = padding == "none" || skips ? Padding::none : Padding::max_length;
  return work_of_any_policy(least, run, shares_tokens(way.choice.options), input.cluster.gpus(), known.window(),
                            known.bench().cost(), known.rates()) >= seconds;
}

std::string planned_as(const PolicyChoice& choice, std::size_t searches, std::int64_t changes) {
  std::string text =
      fmt::format("planned as by {}, the fastest of {} searches of policies, options and splits of layers",
                  spelled(choice), searches);
  if (changes > 0) text += fmt::format("; {} changes of it were judged", changes);
  return text;
}

/// Nothing where a policy of several has not what is asked for.
PlanSearch* begin_search(const PlanningInput& input, const Way& way, const PolicyChoice& asked,
                         std::deque<PlanSearch>& searches) {
  if (!asked.policy->unites()) return &searches.emplace_back(input, way.choice);
  try {
    return &searches.emplace_back(input, way.choice);
  } catch (const Error&) {
    return nullptr;
  }
}

/// While the other tasks wait for a place in their search.
Plan plan_first_tasks(const PlanningInput& asked, std::span<const std::size_t> first, const PolicyChoice& choice) {
  workload::Workload some = asked.workload;
  some.tasks.clear();
  std::vector<std::vector<workload::SampleSize>> sizes, held_out;
  std::vector<TaskIndex> places;
  for (const std::size_t place : first) {
    const TaskIndex task = places.emplace_back(static_cast<TaskIndex>(place));
    some.tasks.push_back(asked.workload.tasks[place]);
    sizes.push_back(asked.samples.sizes(task));
    held_out.push_back(asked.samples.held_out(task));
  }
  const workload::SampleIndex samples(some.tasks, std::move(sizes), std::move(held_out));
  Plan plan = make_plan(asked.with(some, samples), choice);
  plan.data_hashes = data_hashes(asked.workload, plan.data_hashes);
  return plan_among(std::move(plan), asked.workload, places, std::vector<std::int64_t>(asked.workload.tasks.size(), 0));
}

}  // namespace

Plan make_plan(const PlanningInput& asked, const PolicyChoice& choice) {
  if (const std::vector<std::size_t> first = workload::first_tasks(asked.workload);
      first.size() < asked.workload.tasks.size())
    return plan_first_tasks(asked, first, choice);
  const auto began = SteadyClock::now();
  PlanningInput input = asked;
  if (asked.workload.reproducible) {
    check_reproducible(asked);
    if (!input.overrides.tp) input.overrides.tp = 1;
  }
  const std::vector<Way> ways = ways_of(choice, input.overrides, !input.cost.profile().device.empty());
  std::deque<PlanningInput> inputs;
  std::deque<PlanSearch> searches;
  std::vector<std::vector<ReplicaShape>> grid;
  std::optional<Candidate> best;
  std::string next;  // of the other ways
  bool truncated = false;
  PlanSearch* found = nullptr;
  for (std::size_t w = 0; w < ways.size(); ++w) {
    inputs.push_back(input.with(ways[w].overrides));
    if (input.on_progress)
      inputs.back().on_progress = [&, w](double share) {
        input.on_progress((static_cast<double>(w) + share) / static_cast<double>(ways.size()));
      };
    if (best && input.budget_seconds > 0 && seconds_since(began) > input.budget_seconds) {
      truncated = true;
      break;
    }
    if (best && choice.policy->unites() && cannot_be_faster(ways[w], input, *found, best->prediction.step_seconds))
      continue;
    PlanSearch* search = begin_search(inputs.back(), ways[w], choice, searches);
    if (!search) continue;
    grid.insert(grid.end(), search->deployments().begin(), search->deployments().end());
    std::optional<Candidate> fastest = best ? search->fastest_beside(best->looks) : search->fastest();
    if (!fastest) continue;
    if (!best || fastest->prediction.step_seconds < best->prediction.step_seconds) {
      std::swap(best, fastest);
      found = search;
    }
    if (fastest && !choice.policy->unites()) next = slower(*fastest, *best);
  }
  if (!best && searches.empty()) check_placement(input.workload, input.cluster, input.overrides, choice);
  if (!best && nearest_misfit(searches).missing == 0)
    throw error("{}: {} under {} on this cluster; {}", input.workload.file.string(), longest_sample(input),
                choice.policy->name(), cheapest_remedy(input, choice));
  if (!best)
    throw error("{}: {}", input.workload.file.string(),
                describe(nearest_misfit(searches), input.workload, choice.policy->name(),
                         searches.front().bench().capacity(), cheapest_remedy(input, choice)));
  std::int64_t changes = 0;
  if (choice.policy->unites() && !truncated)
    changes = refine_bins(found->bench(), mean_lengths(input.samples, input.workload.tasks.size()), *best);
  if (!next.empty()) best->arrangement.reasons.insert(best->arrangement.reasons.begin(), next);
  std::optional<Preferred> preferred;
  if (input.preference == Preference::memory) {
    preferred = {usable_memory(found->bench().cost().profile(), input.preference).free, best->prediction.step_seconds,
                 best->fullest()};
    found = take_least_memory(searches, found, *preferred, *best);
  }
  if (choice.policy->unites()) {
    best->arrangement.united = true;
    best->arrangement.reasons.insert(best->arrangement.reasons.begin(),
                                     planned_as(found->choice(), searches.size(), changes));
  }
  if (input.workload.reproducible) best->arrangement.reasons.push_back(how_reproducible(input.overrides));
  verify_telling_windows(best->arrangement.fixed, found->window(), found->bench().capacity());
  if (std::string packings = describe_packings(best->arrangement.fixed, found->window()); !packings.empty())
    best->arrangement.reasons.push_back(std::move(packings));
  if (input.models) write_step_models(best->arrangement.fixed, found->window(), *input.models);
  Plan plan;
  plan.workload = input.workload;
  plan.cluster = input.cluster;
  plan.profile = found->bench().cost().profile();
  plan.policy = choice.policy->name();
  plan.options = choice.options;
  plan.lower_bound = policy_bound(best->arrangement, grid, input.overrides, found->window(), found->bench().cost(),
                                  found->rates(), found->bench().capacity());
  plan.fixed = std::move(best->arrangement.fixed);
  plan.reasons = std::move(best->arrangement.reasons);
  plan.predicted = best->prediction;
  plan.preferred = preferred;
  plan.data_hashes = data_hashes(input.workload, input.known_hashes);
  plan.asked = asked.overrides;
  plan.truncated = truncated || best->arrangement.truncated;
  plan.planning_seconds = seconds_since(began);
  return plan;
}

}  // namespace braid::planner
