#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "sim/cluster/configurations.h"
#include "sim/cluster/instance_models.h"
#include "sim/cluster/metrics.h"
#include "sim/cluster/trace_jobs.h"

namespace braid::sim {

/// How instances follow their tasks (MuxTune §5.4).
enum class Scaling : std::uint8_t {
  out,          ///< all have the same GPUs
  up,           ///< they get more GPUs as tasks join, up to the cluster's
  up_then_out,  ///< up to those of an instance
};
/// "out", "up", "up-then-out". Throws Error for another word, which lists these.
Scaling parse_scaling(const std::string& word);
std::string_view name(Scaling scaling);

/// What a what-if study is about: a trace, a cluster, and how jobs run on it.
struct StudySettings {
  bool as_recorded = false;  ///< jobs keep their recorded GPUs and durations, from one flat pool
  Configurations configurations;
  workload::Cluster cluster;
  std::int64_t instance_gpus = 0;  ///< 0: those of a node
  Scaling scaling = Scaling::out;
  std::vector<std::int64_t> elastic_gpus;  ///< that instances of elastic schedulers may have; none: up to two nodes
  std::int64_t job_gpus = 0;               ///< that a job's recorded duration counts for; 0: an instance's
  bool recorded_job_gpus = false;          ///< those recorded, in their place
  std::int64_t most_tasks = 8;             ///< of an instance
  double most_slowdown = std::numeric_limits<double>::infinity();  ///< of a task among others
  double load = 0;  ///< arrivals are drawn together until it is offered; 0: as they are
  double horizon_seconds = std::numeric_limits<double>::infinity();
  double load_bytes_per_second = 2e9;  ///< at which a backbone is read
  double replan_seconds = 1;
  std::map<std::string, double> quotas;  ///< of virtual clusters by name; 1 where they have none
  FailureRates failures;
  std::vector<Outage> outages;  ///< recorded ones, in the place of failures that are drawn
  double checkpoint_seconds = 1800;
  double audited_share = 0.01;
  std::optional<double> gpu_hour_price;
  bool keeps_timeline = false;  ///< of runs; changes no result
};

/// One simulation of a study.
struct RunSettings {
  std::string scheduler, policy;
  Placement placement = Placement::packed;
  std::uint64_t seed = 1;
  std::vector<std::pair<std::string, std::string>> swept;  ///< name, value
  StudySettings settings;                                  ///< with those values
};

/// Which simulations a study has: every swept point, scheduler, policy, placement and seed, the last varying fastest.
struct StudyGrid {
  std::vector<std::string> schedulers = {"fcfs"};
  std::vector<std::string> policies = {"muxtune"};  ///< not asked for jobs as recorded
  std::vector<Placement> placements = {Placement::packed};
  std::uint64_t first_seed = 1;
  std::int64_t seeds = 1;
  std::vector<std::pair<std::string, std::vector<std::string>>> sweeps;  ///< name, values
};

/// Makes it one of so many GPUs: whole nodes, or part of one. Throws Error for other numbers.
void set_gpus(workload::Cluster& cluster, std::int64_t gpus);

/// What may be swept.
std::vector<std::string> sweepable();

/// Throws Error for unknown names, which lists those known, and values that make no sense.
std::vector<RunSettings> runs_of(const StudySettings& settings, const StudyGrid& grid);

/// How far estimates were off full replays, as shares of those.
struct EstimateErrors {
  std::int64_t audited = 0;  ///< changes of an instance
  double median = 0, p99 = 0, most = 0;
};

struct RunResult {
  double offered_load = 0;
  std::vector<ClusterJob> jobs;
  ClusterRun run;
  std::vector<Metric> metrics;
  std::vector<double> step_tokens;  ///< per kind
  std::optional<EstimateErrors> errors;
};

/// Runs simulations of one trace. Safe for use by several threads at once: what they plan they share, and none of it
/// depends on who asked first.
class Study {
 public:
  /// The profile is that of the cluster's GPUs.
  Study(traces::Trace trace, costmodel::Profile profile);

  const traces::Trace& trace() const { return trace_; }
  const costmodel::Profile& profile() const { return profile_; }
  RunResult run(const RunSettings& wanted);

 private:
  InstanceModels& models(const RunSettings& wanted);
  InstanceModel* model(const StudySettings& settings, const std::string& policy, std::int32_t most_tasks,
                       std::size_t backbone, std::int64_t gpus);
  /// What recorded durations are taken to be of, per kind: nemo with data parallelism alone, where the backbone fits a
  /// GPU.
  std::vector<std::optional<KindCost>> reference(const StudySettings& settings, std::int32_t gpus);
  InstanceModel* reference_model(const StudySettings& settings, std::size_t backbone, std::int64_t gpus);
  RunResult run_recorded(const RunSettings& wanted, const traces::Trace& trace);
  RunResult run_tasks(const RunSettings& wanted, const traces::Trace& trace);

  traces::Trace trace_;
  costmodel::Profile profile_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<InstanceModel>> model_;    // of one backbone and size
  std::map<std::string, std::unique_ptr<InstanceModels>> models_;  // of a run
};

}  // namespace braid::sim
