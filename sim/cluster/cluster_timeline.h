#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "sim/cluster/simulate_cluster.h"

namespace braid::sim {

/// Writes a run for Perfetto (ui.perfetto.dev) or Chrome: a process for each node, in which each job that began on its
/// GPUs is a slice in the first row that is free; GPUs that break and come back, as instants; and the GPUs allocated,
/// jobs running and jobs waiting, as counters. Times are from the first submission on. The run must have kept its
/// timeline; `job_names` are by JobIndex.
void write_cluster_timeline(const ClusterRun& run, std::span<const std::string> job_names, std::ostream& out);

}  // namespace braid::sim
