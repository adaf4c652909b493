#pragma once

#include <optional>
#include <string>
#include <vector>

#include "costmodel/gpu/energy.h"
#include "sim/cluster/instances/instance_model.h"
#include "sim/cluster/simulate_cluster.h"

namespace braid::sim {

/// What jobs cost and bill, beside what a run says of them.
struct MetricContext {
  std::int64_t gpus = 0;  ///< of the cluster
  bool fails = false;     ///< its GPUs may
  /// Per kind; empty for jobs as recorded.
  std::vector<std::optional<KindCost>> kinds;
  std::vector<double> step_tokens, step_samples;
  double peak_flops = 0;                  ///< of a GPU; 0: not known
  std::optional<costmodel::Power> power;  ///< of a GPU
  std::optional<double> gpu_hour_price;
};

/// A figure of a run. Names end in their unit.
struct Metric {
  std::string name;
  double value = 0;
};

/// What a run comes to, always in the same order; figures that the run has no ground for are left out.
///
/// Completion is from submission to end, queueing what of it is not in service. Finish-time fairness (Themis, NSDI'20)
/// is completion over what the job's recorded duration would have become on its share of the cluster, by the mean
/// number of jobs that were there meanwhile; 1 and less is fair. Utilization takes the FLOPs of each task by itself,
/// without what sharing adds. Energy has GPUs busy while the steps of the tasks that run together compute.
std::vector<Metric> metrics_of(const std::vector<ClusterJob>& jobs, const ClusterRun& run,
                               const MetricContext& context);

/// Mean over several runs (with different seeds) and half the width of its 95 % confidence interval, by Student's t;
/// nothing for a single run.
struct SeedMean {
  std::string name;
  double mean = 0;
  std::optional<double> half_width;
};
/// Metrics that all runs have.
std::vector<SeedMean> over_seeds(const std::vector<std::vector<Metric>>& runs);

}  // namespace braid::sim
