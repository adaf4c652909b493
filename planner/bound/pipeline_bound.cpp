#include "planner/bound/pipeline_bound.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace braid::planner {
namespace {

double at(const std::vector<double>& values, std::size_t place) {
  return values.empty() ? 0 : values[place];
}

std::string collectives_of(std::size_t stage) {
  return fmt::format("collectives of stage {}", stage);
}

/// By what its passes mostly do.
std::string passes_of(const PassSeconds& whole, std::size_t stage) {
  const double half = (whole.forward[stage] + whole.backward[stage]) / 2;
  return at(whole.waiting, stage) > half ? collectives_of(stage) : fmt::format("compute of stage {}", stage);
}

std::string sums_of(std::size_t stage) {
  return fmt::format("gradient sums of stage {}", stage);
}

std::string link_after(std::size_t stage) {
  return fmt::format("link {}-{}", stage, stage + 1);
}

void raise(LowerBound& bound, double seconds, const std::string& binds) {
  if (seconds > bound.step_seconds) bound = {seconds, binds};
}

/// What the busiest stage or link does. All of it is done once a step by one resource, one thing after another.
LowerBound busiest(const PassSeconds& whole, const std::vector<double>& steps, const std::vector<double>& sums) {
  LowerBound bound;
  const std::size_t stages = whole.forward.size();
  for (std::size_t s = 0; s < stages; ++s) {
    raise(bound, whole.forward[s] + whole.backward[s] + at(steps, s), passes_of(whole, s));
    raise(bound, at(whole.collective, s), collectives_of(s));
    raise(bound, at(sums, s), sums_of(s));
    if (s + 1 < stages) raise(bound, at(whole.message, s), link_after(s));
  }
  return bound;
}

/// From the first forward on the first stage to the last backward there.
///
/// Stage s: some microbatch has gone forward through the stages before it first works, and some returns through them
/// after it last does; forward and back each takes the least that any microbatch does. Between, the stage works through
/// all its passes. Also between, the microbatch that goes forward last comes after all the others' forwards, then goes
/// through the stages above and back before its own backward; and before the first backward its microbatch has gone
/// forward here and through the stages above and back, and all backwards are still to come.
///
/// (A round trip plus the other microbatches' time on the slowest stage is more than that, and no bound: where the
/// slowest stage is not the last, the trip above it hides behind the others' passes.)
///
/// Link l, in either direction: what a round trip does before its message comes before the first message, what it does
/// after its message comes after the last.
LowerBound cycle(const BoundBatch& batch) {
  const PassSeconds& whole = batch.whole;
  const PassSeconds& least = batch.least;
  const std::size_t stages = whole.forward.size();
  double round_trip = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    round_trip += least.forward[s] + least.backward[s];
    if (s + 1 < stages) round_trip += 2 * at(least.message, s);
  }
  LowerBound longest;
  double before = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    const double least_forward = least.forward[s], least_backward = least.backward[s];
    const double forward = std::max(whole.forward[s], least_forward);
    const double backward = std::max(whole.backward[s], least_backward);
    const double above = round_trip - before - least_forward - least_backward;
    raise(longest,
          before + std::max({forward + backward, forward + above + least_backward, least_forward + above + backward}),
          passes_of(whole, s));
    raise(longest, before + at(whole.collective, s), collectives_of(s));
    before += least_forward + least_backward;
    if (s + 1 == stages) break;
    const double message = at(least.message, s);
    raise(longest, round_trip - message + std::max(message, at(whole.message, s)), link_after(s));
    before += 2 * message;
  }
  return longest;
}

void add(const std::vector<double>& more, std::vector<double>& sum) {
  sum.resize(std::max(sum.size(), more.size()), 0);
  for (std::size_t i = 0; i < more.size(); ++i) sum[i] += more[i];
}

void lower(const std::vector<double>& other, std::vector<double>& least) {
  // What a task does not say is nothing.
  least.resize(std::min(least.size(), other.size()));
  for (std::size_t i = 0; i < least.size(); ++i) least[i] = std::min(least[i], other[i]);
}

}  // namespace

BoundBatch add_up(std::span<const BoundTask> tasks) {
  BRAID_CHECK(!tasks.empty(), "no tasks");
  BoundBatch sum = tasks.front().batch;
  for (const BoundTask& task : tasks.subspan(1)) {
    const PassSeconds &whole = task.batch.whole, &least = task.batch.least;
    add(whole.forward, sum.whole.forward);
    add(whole.backward, sum.whole.backward);
    add(whole.collective, sum.whole.collective);
    add(whole.waiting, sum.whole.waiting);
    add(whole.message, sum.whole.message);
    lower(least.forward, sum.least.forward);
    lower(least.backward, sum.least.backward);
    lower(least.collective, sum.least.collective);
    lower(least.message, sum.least.message);
  }
  return sum;
}

LowerBound pipeline_bound(const BoundProblem& problem) {
  BRAID_CHECK(!problem.tasks.empty(), "no tasks");
  std::vector<double> steps, sums;
  double finish = std::numeric_limits<double>::infinity();  // of the task whose backward comes last on stage 0
  for (const BoundTask& task : problem.tasks) {
    add(task.step_seconds, steps);
    add(task.sync_seconds, sums);
    finish = std::min(finish, task.finish_seconds);
  }
  LowerBound bound = busiest(problem.together.whole, steps, sums);
  if (problem.drains) {
    const LowerBound drained = cycle(problem.together);
    raise(bound, drained.step_seconds + finish, drained.binds);
  }
  for (const BoundTask& task : problem.tasks) {
    // On stage 0 the Step follows the last backward, and the first forward of the next global batch follows the Step.
    const double longest = std::max(cycle(task.batch).step_seconds, task.round_trip_seconds);
    raise(bound, longest + task.finish_seconds, "cycle of task " + task.name);
  }
  return bound;
}

}  // namespace braid::planner
