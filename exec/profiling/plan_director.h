#pragma once

#include <vector>

#include "exec/profiling/demand.h"
#include "planner/search/planning_input.h"

namespace braid::exec {

/// Directs measuring by what is to be planned: plans with what is known so far, where whatever was not measured is told
/// by bounds, asks for what those plans would rest on unmeasured, and plans again, until plans rest on
/// what was measured or the time is spent. What it is made from must outlive it.
class PlanDirector {
 public:
  /// `ranks` are measured together. Policies of `choices` that have no plan direct nothing.
  PlanDirector(const workload::Workload& workload, const workload::Cluster& cluster,
               const workload::SampleIndex& samples, std::vector<planner::PolicyChoice> choices,
               planner::Overrides overrides, planner::Preference preference, planner::Judge judge, std::int64_t ranks);

  /// What to measure next, as MeasureRequest::next has it.
  std::vector<MeasuredPoint> next(const costmodel::Profile& known, double seconds_left);

 private:
  std::vector<Demand> demands_of_plans(const costmodel::CostModel& cost, double seconds_left);

  const workload::Workload& workload_;
  const workload::Cluster& cluster_;
  const workload::SampleIndex& samples_;
  std::vector<planner::PolicyChoice> choices_;
  planner::Overrides overrides_;
  planner::Preference preference_;
  planner::Judge judge_;
  std::int64_t ranks_;
  std::vector<costmodel::AdapterShape> adapters_;
  std::vector<MeasuredPoint> basic_;   ///< of which nothing was known
  std::vector<MeasuredPoint> chosen_;  ///< so far, those that tell most first
  std::int64_t basic_rounds_ = 0;      ///< times that next was asked
  std::int64_t rounds_ = 1;            ///< times that all chosen points were measured
  bool plans_anew_ = true;
};

}  // namespace braid::exec
