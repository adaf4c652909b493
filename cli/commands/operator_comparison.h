#pragma once

#include <span>
#include <vector>

#include "cli/commands/comparison.h"
#include "exec/profiling/probe.h"
#include "exec/ranks/communicator.h"

namespace braid::cli {

/// Seconds by kind of operator and pass, summed over all ranks, the longest first: what the cost model says of the
/// operators of the executed windows, each by itself, beside `records`, what this rank's took. Every rank calls this;
/// full on rank 0.
std::vector<Compared> compare_operators(const planner::Plan& plan, std::span<const exec::RecordedWindow> windows,
                                        std::span<const exec::Probe::Record> records, exec::Communicator& communicator);

}  // namespace braid::cli
