#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "sim/cluster/instances/instance_models.h"
#include "sim/cluster/metrics.h"
#include "sim/cluster/study/study_settings.h"
#include "sim/cluster/study/trace_jobs.h"
#include "traces/generate.h"

namespace braid::sim {

/// How far estimates were off full replays, as shares of those.
struct EstimateErrors {
  std::int64_t audited = 0;  ///< changes of an instance
  double median = 0, p99 = 0, most = 0;
};

struct RunResult {
  std::shared_ptr<const traces::Trace> trace;  ///< before any load was asked for
  double offered_load = 0;
  std::vector<ClusterJob> jobs;
  ClusterRun run;
  std::vector<Metric> metrics;
  std::vector<double> step_tokens;  ///< per kind
  std::optional<EstimateErrors> errors;
};

/// Runs simulations of a trace. Safe for use by several threads at once: what they plan they share, and none of it
/// depends on who asked first.
class Study {
 public:
  /// All seeds have one trace. The profile is that of the cluster's GPUs.
  Study(traces::Trace trace, costmodel::Profile profile);
  /// Each seed has a trace of its own, the first that of the generator's seed.
  Study(const traces::Generator& generator, costmodel::Profile profile);

  bool draws_traces() const { return generator_.has_value(); }
  /// Of the first seed.
  const traces::Trace& trace() const { return *trace_; }
  const costmodel::Profile& profile() const { return profile_; }
  RunResult run(const RunSettings& wanted);
  /// The first job that no instance is large enough for, or as recorded the whole cluster: it would be rejected.
  std::optional<std::size_t> misfit(const RunSettings& wanted);

 private:
  std::shared_ptr<const traces::Trace> trace_of(std::uint64_t seed) const;
  InstanceModels& models(const RunSettings& wanted);
  InstanceModel* model(const StudySettings& settings, const std::string& policy, std::int32_t most_tasks,
                       std::size_t backbone, std::int64_t gpus);
  /// What recorded durations are taken to be of, per kind: nemo with data parallelism alone, where the backbone fits a
  /// GPU.
  std::vector<std::optional<KindCost>> reference(const StudySettings& settings, std::int32_t gpus);
  InstanceModel* reference_model(const StudySettings& settings, std::size_t backbone, std::int64_t gpus);
  RunResult run_recorded(const RunSettings& wanted, const traces::Trace& trace);
  RunResult run_tasks(const RunSettings& wanted, const traces::Trace& trace);

  std::shared_ptr<const traces::Trace> trace_;
  std::optional<traces::Generator> generator_;
  costmodel::Profile profile_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<InstanceModel>> model_;    // of one backbone and size
  std::map<std::string, std::unique_ptr<InstanceModels>> models_;  // of a run
};

/// That a run's trace offers to its cluster, before any is asked for.
double offered_load(const StudySettings& settings, const traces::Trace& trace);

}  // namespace braid::sim
