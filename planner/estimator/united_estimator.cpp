#include "planner/estimator/united_estimator.h"

#include "base/error.h"
#include "planner/search/ways.h"

namespace braid::planner {

UnitedEstimator::UnitedEstimator(const PlanningInput& input, const PolicyChoice& choice, std::int32_t most_tasks,
                                 std::shared_ptr<Layouts> layouts)
    : StepEstimator(layouts) {
  std::string why;
  for (const Way& way : ways_of(choice, input.overrides, !input.cost.profile().device.empty())) {
    try {
      members_.push_back(make_step_estimator(input.with(way.overrides), way.choice, most_tasks, layouts));
    } catch (const Error& error) {
      if (why.empty()) why = error.what();
    }
  }
  if (members_.empty()) throw error("{}", why);
  const std::size_t kinds = input.workload.tasks.size();
  std::vector<bool> is_fastest(members_.size());
  const auto note_fastest = [&](std::span<const std::int32_t> counts) {
    const std::optional<Told> told = least(counts);
    if (!told) return static_cast<StepEstimator*>(nullptr);
    for (std::size_t m = 0; m < members_.size(); ++m) {
      if (members_[m].get() == told->by) is_fastest[m] = true;
    }
    return told->by;
  };
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    std::vector<std::int32_t> counts(kinds, 0);
    counts[kind] = 1;
    const StepEstimator* fastest = note_fastest(counts);
    alone_.push_back(fastest ? fastest->alone(kind) : std::nullopt);
  }
  for (const std::vector<std::int32_t>& counts : telling_sets(kinds, most_tasks)) note_fastest(counts);
  std::vector<std::unique_ptr<StepEstimator>> kept;
  for (std::size_t m = 0; m < members_.size(); ++m) {
    if (is_fastest[m]) kept.push_back(std::move(members_[m]));
  }
  members_ = std::move(kept);
}

std::optional<UnitedEstimator::Told> UnitedEstimator::least(std::span<const std::int32_t> counts) {
  std::optional<Told> best;
  for (const std::unique_ptr<StepEstimator>& member : members_) {
    const std::optional<StepEstimate> estimate = member->estimate(counts);
    if (!estimate || (best && best->estimate.step_seconds <= estimate->step_seconds)) continue;
    best = {*estimate, member.get()};
  }
  return best;
}

std::optional<StepEstimate> UnitedEstimator::estimate(std::span<const std::int32_t> counts) {
  const std::optional<Told> told = least(counts);
  if (!told) return std::nullopt;
  return told->estimate;
}

double UnitedEstimator::replayed(std::span<const std::int32_t> counts) {
  const std::optional<Told> told = least(counts);
  BRAID_CHECK(told, "a set is replayed that has no estimate");
  return told->by->replayed(counts);
}

}  // namespace braid::planner
