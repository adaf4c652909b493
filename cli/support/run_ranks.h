#pragma once

#include <atomic>
#include <memory>

#include "cli/support/session.h"
#include "exec/trainer.h"

namespace braid::cli {

/// The communicator that `plan` needs in this process: none for one rank, MPI's under a launcher. Throws Error when the
/// ranks that run are not the plan's.
std::unique_ptr<exec::Communicator> communicator_for(const planner::Plan& plan);

/// Holds what the ranks were started with against rank 0's: one program and one plan. Every rank calls this; rank 0
/// throws Error that names the first which has another.
void check_ranks_are_alike(const planner::Plan& plan, exec::Communicator& communicator);

/// Each rank's bytes on rank 0, in order; empty elsewhere.
std::vector<Bytes> gather_bytes(Bytes mine, exec::Communicator& communicator);

/// True when the plan needs several ranks and no launcher has started any: the command must start itself again. Throws
/// Error for a plan that the backend cannot execute here.
bool must_launch(const planner::Plan& plan, const std::string& backend);

/// Starts this command again as the plan's ranks, on a copy of the plan, and returns their status.
int launch_with_plan(const std::string& command, const planner::Plan& plan, const CommonFlags& flags);

/// While it lives, the first Ctrl-C (SIGINT, SIGTERM, or SIGUSR1 and SIGUSR2 from the process that launched the ranks)
/// sets the flag; a second one ends the program at once.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  const std::atomic<bool>& asked() const;
  /// Whether it was SIGTERM that asked: what ends so has ended well once its state is kept.
  bool terminated() const;
};

}  // namespace braid::cli
