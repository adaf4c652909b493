#pragma once

#include <string>
#include <vector>

namespace braid::cli {

/// Runs this program again with `words`, as `ranks` ranks under mpirun with the flags that suit one machine, and
/// returns its exit status. Ctrl-C here lets the ranks finish what they are at (they are told by SIGUSR1); the status
/// is then theirs. Throws Error when there is no mpirun.
int launch_ranks(int ranks, const std::vector<std::string>& words);

/// In the environment of launched ranks: the notices that were told by then.
inline constexpr const char* kToldVariable = "BRAID_TOLD_NOTICES";
/// Not empty where what the ranks print reaches a terminal: mpirun gives them a pseudo-terminal of its own in any case.
inline constexpr const char* kTerminalVariable = "BRAID_TERMINAL";

/// Thrown when launched ranks failed or were interrupted; they have told why.
struct RanksEnded {
  int status = 0;
};

/// A launched rank that is told to end (see launch_ranks) and has nothing to finish does so at once, with status 130.
void end_when_told();

/// Starts this process anew, once, so that worker threads that run out of work spin for about a tenth of a millisecond
/// and then sleep: threads that spin for as long as OpenMP would have them stop each other as soon as cores are shared
/// with anything else. GNU OpenMP reads how long to spin when it is loaded, before `main`. Does nothing when the
/// environment says how to wait already.
void restart_with_sleeping_threads(char** arguments);

}  // namespace braid::cli
