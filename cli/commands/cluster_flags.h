#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/support/options.h"
#include "sim/cluster/study/study_grid.h"
#include "traces/read_trace.h"

namespace braid::cli {

/// What `braid cluster` is asked for.
struct ClusterFlags {
  CommonFlags common;
  std::string trace;  ///< file; empty: one is generated
  traces::ReadOptions reading;
  std::string outages;  ///< file; read into the settings
  std::string quotas;   ///< as given: what it names the trace must have
  bool strict = false, resume = false;
  sim::StudySettings settings;  ///< all but the quotas
  sim::StudyGrid grid;
};

/// Nothing when --help was asked for and printed. Reads the files that --cluster and --outages name. Throws Error for
/// words that mean nothing, and boost::program_options::error for flags that there are not.
std::optional<ClusterFlags> parse_cluster_flags(const std::vector<std::string>& words);

/// --quotas: "name=weight,name=weight". Throws Error for virtual clusters that the trace does not have.
std::map<std::string, double> quotas_of(const std::string& text, const traces::Trace& trace);

}  // namespace braid::cli
