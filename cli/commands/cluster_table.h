#pragma once

#include <string>
#include <vector>

#include "sim/cluster/study/study.h"

namespace braid::cli {

/// What a study is about, before any result: trace, offered load, cluster, tasks.
void print_study(const sim::Study& study, const sim::StudySettings& settings,
                 const std::vector<workload::Workload>& kinds, const std::vector<sim::RunSettings>& runs);

/// One table of a study's summary.json, a line for each group of runs that differ in their seeds alone.
void print_summary(const std::string& summary);

/// The largest 99th percentile of any run's estimates' errors; 0 where none was audited.
double worst_error(const std::string& summary);

}  // namespace braid::cli
