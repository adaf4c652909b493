#include "exec/profiling/plan_director.h"

#include <algorithm>

#include "base/error.h"
#include "base/steady_clock.h"
#include "exec/profiling/coverage.h"
#include "exec/profiling/measure.h"
#include "planner/search/make_plan.h"
#include "planner/window/window.h"

namespace braid::exec {
namespace {

/// Medians over passes stay put from here on.
constexpr std::int64_t kMostRounds = 5;
/// The basic points are measured so many times.
constexpr std::int64_t kBasicRounds = 2;
/// Of the time that is left what new points may take the first time; the rest is for measuring them again.
constexpr double kShareOfNew = 0.5;
/// What planning may take of it, unless there is one policy alone.
constexpr double kShareOfPlanning = 0.2;
/// A pass that takes longer goes through fewer layers.
constexpr double kSecondsAPass = 2;

/// Those of some operator of which nothing near is known.
std::vector<MeasuredPoint> unknown_of(std::vector<MeasuredPoint> points, const costmodel::CostModel& cost,
                                      const workload::Workload& workload,
                                      std::span<const costmodel::AdapterShape> adapters) {
  const Coverage coverage(cost.profile());
  costmodel::StageShape stage;
  stage.layers = workload.backbone.layers;
  stage.has_embedding = stage.has_head = true;
  std::erase_if(points, [&](const MeasuredPoint& point) {
    for (const costmodel::Pass pass : {costmodel::Pass::forward, costmodel::Pass::backward}) {
      for (const costmodel::OperatorCall& call :
           calls_of(point, workload.backbone, stage, adapters, pass, cost.storage())) {
        if ((call.op != costmodel::Operator::attention || point.attends) && coverage.distance(call) >= 1) return false;
      }
    }
    return true;
  });
  return points;
}

std::int64_t longest_sample(const workload::SampleIndex& samples) {
  std::int64_t longest = 0;
  for (int task = 0; task < samples.tasks(); ++task) {
    for (const workload::SampleSize& size : samples.sizes(task)) longest = std::max(longest, size.tokens);
  }
  return longest;
}

}  // namespace

PlanDirector::PlanDirector(const workload::Workload& workload, const workload::Cluster& cluster,
                           const workload::SampleIndex& samples, std::vector<planner::PolicyChoice> choices,
                           planner::Overrides overrides, planner::Preference preference, planner::Judge judge,
                           std::int64_t ranks)
    : workload_(workload),
      cluster_(cluster),
      samples_(samples),
      choices_(std::move(choices)),
      overrides_(std::move(overrides)),
      preference_(preference),
      judge_(std::move(judge)),
      ranks_(ranks),
      adapters_(planner::adapters_of(workload)) {}

std::vector<MeasuredPoint> PlanDirector::next(const costmodel::Profile& known, double seconds_left) {
  const costmodel::CostModel cost(known);
  if (basic_rounds_ == 0)
    basic_ = unknown_of(
        basic_points(adapters_, longest_sample(samples_), static_cast<std::int32_t>(overrides_.tp.value_or(1))), cost,
        workload_, adapters_);
  if (basic_rounds_++ < kBasicRounds && !basic_.empty()) return basic_;
  if (plans_anew_ && seconds_left > 0) {
    const SteadyClock::time_point began = SteadyClock::now();
    const std::vector<Demand> demands = demands_of_plans(cost, seconds_left);
    const double planning = seconds_since(began);
    MeasuringRules rules{workload_.backbone, adapters_, probed_layers(workload_.backbone, ranks_)};
    rules.seconds = kShareOfNew * (seconds_left - planning);
    rules.seconds_a_pass = std::min(kSecondsAPass, rules.seconds / 8);
    const std::vector<MeasuredPoint> telling = most_telling(demands, cost, rules);
    // Planning that takes long leaves no time to measure.
    plans_anew_ = !telling.empty() && 3 * planning < seconds_left;
    chosen_.insert(chosen_.end(), telling.begin(), telling.end());
    if (!telling.empty()) return telling;
  }
  plans_anew_ = false;
  if (seconds_left > 0 && rounds_++ < kMostRounds) return chosen_;
  return {};
}

std::vector<Demand> PlanDirector::demands_of_plans(const costmodel::CostModel& cost, double seconds_left) {
  const SteadyClock::time_point began = SteadyClock::now();
  std::vector<Demand> demands;
  for (const planner::PolicyChoice& choice : choices_) {
    if (!demands.empty() && seconds_since(began) > kShareOfPlanning * seconds_left) break;
    try {
      const planner::Plan plan =
          planner::make_plan({workload_, cluster_, samples_, cost, judge_, overrides_, preference_}, choice);
      const std::vector<Demand> more = demand_of(plan.fixed, {workload_, samples_}, cost);
      demands.insert(demands.end(), more.begin(), more.end());
    } catch (const Error&) {
      // That it has no plan is said when it is planned for good.
    }
  }
  return demands;
}

}  // namespace braid::exec
