#pragma once

#include <atomic>
#include <deque>
#include <future>
#include <optional>
#include <set>
#include <vector>

#include "cli/support/run_inbox.h"
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
/// Where a search ends tasks the run is planned anew as well, and goes over where that pays.
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
    std::set<planner::TaskIndex> live, paused;
    std::vector<std::int64_t> taken;
    std::vector<RunRequest> requests;  ///< none: it is planned anew as tasks were outranked
    std::int64_t outranked = 0;
  };
  struct Outcome {
    std::optional<RunChange> change;
    std::vector<std::pair<RunRequest, std::string>> rejected;  // with the reasons
  };

  void hear(bool now);
  void hear(const RunRequest& request);
  void plan_pending();
  Outcome outcome_of(const Order& order) const;
  RunChange planned(const Order& order, const workload::Workload& whole, const std::set<planner::TaskIndex>& live,
                    std::vector<workload::Dataset> joined) const;
  double step_seconds_now(const Order& order) const;
  bool pays(const Order& order, const planner::Plan& plan) const;
  bool has_ended(planner::TaskIndex task) const;
  void settle();
  bool any_left() const;

  RunInbox inbox_;
  const planner::Plan* plan_ = nullptr;
  const Data* data_ = nullptr;
  std::vector<std::int64_t> taken_;
  std::set<planner::TaskIndex> ended_, paused_;
  std::vector<RunRequest> pending_;
  std::int64_t outranked_ = 0;  // since it was planned last
  bool unasked_ = false;        // what is being planned nobody asked for
  std::deque<std::pair<planner::TaskIndex, RunRequest>> cancelled_;
  std::atomic<bool> given_up_ = false;
  std::future<Outcome> planning_;
  std::optional<RunChange> ready_;
};

}  // namespace braid::cli
