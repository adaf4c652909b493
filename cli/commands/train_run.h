#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/file_lock.h"
#include "cli/commands/training_log.h"
#include "cli/support/change_cost.h"
#include "cli/support/run_changes.h"
#include "cli/support/run_ranks.h"
#include "cli/support/run_status.h"
#include "cli/support/tensorboard.h"

namespace braid::cli {

/// What the command's own flags say.
struct TrainFlags {
  bool resume = false;
  bool stay = false;
  double checkpoint_minutes = 10;
  std::int64_t checkpoint_steps = 0;
  std::int64_t checkpoints_kept = exec::Checkpoints::kUsuallyKept;
};

/// A change that is under way.
struct GoingOver {
  RunChange change;
  planner::PlanChange of_plans;
  ChangeCost cost;
  SteadyClock::time_point began;  ///< when the last window of the plan before was told
};

/// Throws Error where --overwrite would delete what no run of braid's wrote to `out`, or what this one reads.
void check_given_up(const std::filesystem::path& out, const planner::Plan& plan, const CommonFlags& flags);

/// A run on this rank, from its beginning or where it stood to its end, by one plan after another: the device, the data
/// and the frozen weights stay, a runner is there as long as its plan is.
class TrainRun {
 public:
  TrainRun(planner::Plan plan, const CommonFlags& flags, const TrainFlags& own);
  TrainRun(const TrainRun&) = delete;
  TrainRun& operator=(const TrainRun&) = delete;

  /// Returns the program's exit status.
  int run();

 private:
  void begin_folder() const;
  void make_runner();
  void take_over(std::optional<exec::Checkpoint> begun);
  exec::TrainResult run_by_plan();
  std::optional<RunChange> tell_all(std::optional<RunChange> change);
  std::optional<RunChange> next_change();
  std::optional<RunChange> wait_for_change();
  void go_over(RunChange change);
  void write_adapter(planner::TaskIndex task);
  std::optional<double> try_to_write(const std::string& folder, planner::TaskIndex task);
  void write_adapters(const exec::TrainResult& result, const std::optional<RunChange>& change);
  int finish(const exec::TrainResult& result);
  void explain_times();
  void write_timeline(const exec::TrainResult& result) const;
  void tell_cost(GoingOver over);

  CommonFlags flags_;
  TrainFlags own_;
  std::filesystem::path out_;
  std::unique_ptr<planner::Plan> plan_;
  std::unique_ptr<exec::Communicator> communicator_;
  std::unique_ptr<exec::CommunicatorGroup> all_ranks_;
  bool tells_ = false;
  Data data_;
  std::unique_ptr<kernels::Device> device_;
  exec::HeldBackbone backbone_;
  std::unique_ptr<exec::Runner> runner_;
  std::optional<exec::Checkpoint> begun_;
  std::optional<InterruptGuard> interrupts_;
  std::vector<std::optional<double>> largest_;  // per task: magnitudes of adapters that were written

  // Of rank 0 alone:
  std::optional<FileLock> lock_;
  std::optional<RunChanges> changes_;
  std::optional<AppendedFile> told_changes_;
  std::optional<TrainingLog> log_;
  std::optional<StatusKeeper> status_;
  std::optional<TensorBoardLog> board_;

  ChangeRates rates_;
  std::optional<GoingOver> over_;  // from the plan before, until a window of this one begins
  double seconds_of_change_ = 0;   // of keeping state for it
  Bytes bytes_of_change_ = 0;
  SteadyClock::time_point last_window_;  // told
};

}  // namespace braid::cli
