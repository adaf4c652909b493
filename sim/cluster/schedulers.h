#pragma once

#include "sim/cluster/scheduler.h"

namespace braid::sim {

std::unique_ptr<Scheduler> make_fcfs(const std::vector<ClusterJob>& jobs);
std::unique_ptr<Scheduler> make_fcfs_any(const std::vector<ClusterJob>& jobs);
std::unique_ptr<Scheduler> make_sjf(const std::vector<ClusterJob>& jobs);
std::unique_ptr<Scheduler> make_easy(const std::vector<ClusterJob>& jobs);
std::unique_ptr<Scheduler> make_conservative(const std::vector<ClusterJob>& jobs);
std::unique_ptr<Scheduler> make_srtf(const std::vector<ClusterJob>& jobs);
std::unique_ptr<Scheduler> make_srsf(const std::vector<ClusterJob>& jobs);
std::unique_ptr<Scheduler> make_priority(const std::vector<ClusterJob>& jobs);
std::unique_ptr<Scheduler> make_edf(const std::vector<ClusterJob>& jobs);
std::unique_ptr<Scheduler> make_las(const std::vector<ClusterJob>& jobs);
std::unique_ptr<Scheduler> make_gittins(const std::vector<ClusterJob>& jobs);
std::unique_ptr<Scheduler> make_max_min(const std::vector<ClusterJob>& jobs);
std::unique_ptr<Scheduler> make_ftf(const std::vector<ClusterJob>& jobs);
std::unique_ptr<Scheduler> make_drf(const std::vector<ClusterJob>& jobs);
std::unique_ptr<Scheduler> make_deadline(const std::vector<ClusterJob>& jobs);
std::unique_ptr<Scheduler> make_budget(const std::vector<ClusterJob>& jobs);
std::unique_ptr<Scheduler> make_goodput(const std::vector<ClusterJob>& jobs);
std::unique_ptr<Scheduler> make_mux(const std::vector<ClusterJob>& jobs);

}  // namespace braid::sim
