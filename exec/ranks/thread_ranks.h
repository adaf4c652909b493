#pragma once

#include <functional>

#include "exec/ranks/communicator.h"

namespace braid::exec {

/// Has so many ranks do `work`, each a thread of this process: for plans of many ranks without MPI, in tests and under
/// sanitizers. Messages are copied when they are sent, sums are made in the order of ranks. Returns when all have
/// ended. Where one throws, whoever waits for it then throws Failure, and what it threw is thrown here; of several that
/// throw of themselves, what the lowest rank threw.
void run_on_threads(int ranks, const std::function<void(Communicator&)>& work);

}  // namespace braid::exec
