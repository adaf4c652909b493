#pragma once

#include <string>
#include <vector>

namespace braid::cli {

/// Runs this program again with `words`, as `ranks` ranks under mpirun with the flags that suit one machine, and returns
/// its exit status. Ctrl-C here lets the ranks finish what they are at (they are told by SIGUSR1); the status is then
/// theirs. Throws Error when there is no mpirun.
int launch_ranks(int ranks, const std::vector<std::string>& words);

}  // namespace braid::cli
