#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "exec/evaluations.h"
#include "exec/runner.h"
#include "planner/plan/plan.h"

namespace braid::exec {

/// Where a task stands: what comes next is its global batch `taken`. Data, dropout and learning rates depend on that
/// number and on the task alone, so that it is all there is to keep beside the adapter and AdamW's moments.
struct TaskState {
  std::int64_t taken = 0;  ///< steps
  Ended ended = Ended::no;
  std::filesystem::path file;  ///< its adapter and moments; empty: it begins
  std::vector<Evaluated> evaluations = {};
  bool written = false;   ///< there is a file
  std::string hash = {};  ///< of the file; on the rank that wrote or read it
};

/// A run's state between two of its windows, as a run may go on from it: on the same plan or any other of the same
/// backbone, with some of its tasks or more.
struct Checkpoint {
  std::filesystem::path folder;
  std::vector<TaskState> tasks;      ///< of the workload that goes on, in its order
  std::vector<std::string> notices;  ///< newer ones that are broken, and why; tasks that do not go on
};

/// The checkpoints of a run, in one folder: NUMBER/TASK.safetensors holds `parameters`, `first_moments` and
/// `second_moments`, each [layers, numbers of a layer]; NUMBER/checkpoint.json, which is written last, says where each
/// task stands and the hash of its file. So one that is not whole is known, and the one before is there: of those that
/// are whole the newest stay.
class Checkpoints {
 public:
  static constexpr std::int64_t kUsuallyKept = 2;

  /// Of runs of that plan, which outlives it; so many stay.
  Checkpoints(std::filesystem::path folder, const planner::Plan& plan, std::int64_t kept = kUsuallyKept);

  /// Rank 0 writes where the tasks stand; all ranks call this, between two windows. Of a task that has taken no step
  /// since it was written before, or that the plan has no hTask of, the file of the checkpoint before is linked. Throws
  /// Failure on rank 0 where writing fails, on a full disk say: what was there stays, and the run can go on.
  void write(std::span<const std::int64_t> taken, const EndedTasks& ended, const Evaluations& evaluations,
             Runner& runner, Communicator& communicator);

  /// The newest that is whole; nothing where there is none. Throws Error where it is of another backbone, or where of a
  /// task the data, the batch size, the seed, the objective or the adapter has changed, by which its steps would be
  /// others.
  std::optional<Checkpoint> newest() const;
  /// Of all that were written here: seconds and bytes of states.
  double spent_seconds() const { return spent_seconds_; }
  Bytes spent_bytes() const { return spent_bytes_; }
  /// What the run goes on from.
  void begin_from(const Checkpoint& begun) { written_ = begun.tasks; }

 private:
  std::vector<std::filesystem::path> numbered() const;
  std::filesystem::path begin_next();
  Adapter::State whole_state(std::size_t task, Runner& runner, Communicator& communicator) const;
  static void take_over(const std::filesystem::path& before, const std::filesystem::path& file);
  void write_state(const Adapter::State& state, const std::filesystem::path& file) const;
  std::string manifest(std::span<const TaskState> standing, const EndedTasks& ended,
                       const Evaluations& evaluations) const;
  void prune() const;
  std::optional<Checkpoint> read(const std::filesystem::path& folder) const;

  std::filesystem::path folder_;
  const planner::Plan& plan_;
  std::int64_t kept_;
  double spent_seconds_ = 0;
  Bytes spent_bytes_ = 0;
  std::vector<TaskState> written_;  // by task, the last that was written whole; the same on all ranks but for the files
};

/// Gives each task its adapter and moments; of a rank's layers. A task that begins keeps what it has. Throws Error
/// where a file is of another adapter.
void restore(const Checkpoint& checkpoint, const workload::Workload& workload, Runner& runner);

/// A part of a rank's adapters, from all ranks on rank 0: layer after layer of the whole backbone, `mine` being those
/// of this rank. Empty elsewhere.
std::vector<float> gather_layers(const std::vector<float>& mine, std::int64_t layer_numbers, Runner& runner,
                                 std::int64_t layers, Communicator& communicator);

}  // namespace braid::exec
