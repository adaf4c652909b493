#pragma once

#include "sim/cluster/instances/instance_model.h"
#include "traces/trace.h"

namespace braid::sim {

/// A trace's jobs, each alone on its recorded GPUs for its recorded duration.
std::vector<ClusterJob> recorded_jobs(const traces::Trace& trace);

/// Which kind of task each job of a trace is: all alike often, drawn by (seed, row) alone.
std::vector<KindIndex> draw_kinds(const traces::Trace& trace, std::int32_t kinds, std::uint64_t seed);

/// Steps a second of each kind on some number of GPUs.
using StepRates = std::function<double(KindIndex kind, std::int32_t gpus)>;

/// How many steps each job's task must take: those that it would have taken in its recorded duration at `reference`
/// rates on `job_gpus` GPUs (0: as many as were recorded), so that all policies have the same work.
std::vector<double> owed_steps(const traces::Trace& trace, const std::vector<KindIndex>& kinds,
                               const StepRates& reference, std::int32_t job_gpus);

/// The same jobs as tasks that ask for instances of so many GPUs, where each kind costs what `alone` says. Those whose
/// kind does not fit have no service time; the simulation rejects them.
std::vector<ClusterJob> task_jobs(const traces::Trace& trace, const std::vector<KindIndex>& kinds,
                                  const std::vector<double>& steps, std::int32_t gpus,
                                  const std::vector<std::optional<KindCost>>& alone);

}  // namespace braid::sim
