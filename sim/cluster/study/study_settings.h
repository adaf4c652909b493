#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/cluster/gpu_pool.h"
#include "sim/cluster/moments.h"
#include "sim/cluster/outages.h"
#include "sim/cluster/study/configurations.h"
#include "sim/cluster/study/drawn_terms.h"
#include "workload/cluster.h"

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
  double horizon_seconds = kNever;
  double load_bytes_per_second = 2e9;  ///< at which a backbone is read
  double replan_seconds = 1;
  std::map<std::string, double> quotas;  ///< of virtual clusters by name; 1 where they have none
  DrawnTerms terms;
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

/// Makes it one of so many GPUs: whole nodes, or part of one. Throws Error for other numbers.
void set_gpus(workload::Cluster& cluster, std::int64_t gpus);

/// GPUs of an instance that neither scales nor is elastic.
std::int64_t instance_gpus(const StudySettings& settings);

/// GPUs that instances of a run may have, ascending.
std::vector<std::int32_t> instance_sizes(const RunSettings& wanted);

/// That share an instance, at most. Throws Error for a policy that is not known.
std::int32_t most_tasks(const RunSettings& wanted);

}  // namespace braid::sim
