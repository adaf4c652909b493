#pragma once

#include <atomic>
#include <deque>
#include <future>
#include <optional>
#include <set>
#include <vector>

#include "cli/support/replan.h"
#include "cli/support/run_inbox.h"
#include "cli/support/run_standing.h"
#include "cli/support/session.h"
#include "exec/trainer.h"

namespace braid::cli {

/// How a run is to go on: another plan, for the tasks that run from then on.
struct RunChange {
  planner::Plan plan;                          ///< of the whole table of tasks, to which new ones are appended
  std::vector<workload::Dataset> joined = {};  ///< of these
  std::vector<RunRequest> requests = {};       ///< that it does
  std::vector<std::string> what = {};          ///< in words: "quiz joins"
  double planning_seconds = 0;
};

/// What is asked of a run, on rank 0, and the plans that follow from it. They are made beside training, as the plan
/// that runs was: by its policy, its options and what was asked of it, its profile, and on the ranks that run.
/// Where a search ends tasks the run is planned anew as well, and goes over where that pays; where it has a place for a
/// task that waits, the run goes over in any case.
class RunChanges {
 public:
  explicit RunChanges(const std::filesystem::path& run) : inbox_(run) {}
  RunChanges(const RunChanges&) = delete;
  RunChanges& operator=(const RunChanges&) = delete;
  /// Gives up what is being planned.
  ~RunChanges();

  /// The run goes on by that plan, from there; both outlive what follows.
  void begin(const planner::Plan& plan, const Data& data, const exec::Checkpoint* begun);
  void on_window(const exec::WindowReport& report);
  void on_evaluation(const exec::EvaluationReport& report);
  /// It takes no further step by this plan, as it waits for others of its search.
  void on_held(planner::TaskIndex task) { training_.erase(task); }
  /// It takes no further step.
  void on_ended(planner::TaskIndex task, exec::Ended how = exec::Ended::no);

  /// A task that is to be cancelled.
  std::optional<planner::TaskIndex> next_cancelled();
  /// Looks at what is asked for, and plans; whether a change is there.
  bool ready();
  /// The change that is there, is being planned, or is asked for by now; none where `stop` is set meanwhile.
  std::optional<RunChange> take(const std::atomic<bool>* stop);
  /// It is on the disk.
  void done(const RunChange& change);

 private:
  /// What a change is planned from; a copy, as the run goes on meanwhile.
  struct Order {
    planner::Plan plan;  // that runs
    workload::SampleIndex samples;
    RunStanding standing;
    std::set<planner::TaskIndex> training;
    std::vector<RunRequest> requests;  ///< none: it is planned anew as tasks were outranked or have places
    std::int64_t outranked = 0;
  };
  struct Outcome {
    std::optional<RunChange> change;
    std::vector<std::pair<RunRequest, std::string>> rejected;  // with the reasons
    std::string no_plan = {};                                  // why there is none with those that have a place
  };

  void hear(bool now);
  void hear(const RunRequest& request);
  void plan_pending();
  Outcome outcome_of(const Order& order) const;
  Outcome unasked_outcome_of(const Order& order) const;
  RunChange planned(const Order& order, const workload::Workload& whole, const std::set<planner::TaskIndex>& live,
                    const std::vector<workload::Dataset>& joined) const;
  double step_seconds_now(const Order& order, const std::set<planner::TaskIndex>& live) const;
  bool pays(const Order& order, const std::set<planner::TaskIndex>& live, const planner::Plan& plan) const;
  static TaskSizes sizes_of(const Order& order, const std::vector<workload::Dataset>& joined, planner::TaskIndex task);
  static std::set<planner::TaskIndex> live_of(const Order& order, const workload::Workload& whole,
                                              const std::set<planner::TaskIndex>& paused,
                                              const std::vector<workload::Dataset>& joined);
  std::set<planner::TaskIndex> live() const;
  bool has_ended(planner::TaskIndex task) const { return standing_.has_ended(task, data_->samples); }
  void settle();

  RunInbox inbox_;
  const planner::Plan* plan_ = nullptr;
  const Data* data_ = nullptr;
  RunStanding standing_;
  std::set<planner::TaskIndex> training_;      // by the plan
  std::set<planner::TaskIndex> without_plan_;  // live, but no plan has room for all of them
  std::vector<RunRequest> pending_;
  std::int64_t outranked_ = 0;  // since it was planned last
  bool spared_ = false;         // what is being planned the run can do without
  std::deque<std::pair<planner::TaskIndex, RunRequest>> cancelled_;
  std::atomic<bool> given_up_ = false;
  std::future<Outcome> planning_;
  std::optional<RunChange> ready_;
};

}  // namespace braid::cli
