#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace braid::report {

/// The folder that `braid cluster --out` writes.
struct ClusterStudy {
  /// What a run or a group of them is: (scheduler, fcfs), (policy, muxtune), ... and what was swept.
  using Identity = std::vector<std::pair<std::string, std::string>>;
  struct Metric {
    double mean = 0;
    std::optional<double> half;  ///< of its 95 % interval
  };
  struct Group {
    Identity identity;
    std::int64_t seeds = 0;
    std::map<std::string, Metric> metrics = {};
    /// Of the first seed alone:
    std::vector<double> completion_seconds = {}, queueing_seconds = {};
    struct Hour {
      double from_seconds = 0, gpus = 0, running = 0, waiting = 0;
    };
    std::vector<Hour> hours = {};

    /// Nothing where no run has it.
    std::optional<double> mean(const std::string& metric) const;
  };

  std::filesystem::path folder;
  std::string trace, gpu, jobs;
  std::int64_t gpus = 0, job_count = 0;
  std::vector<Group> groups;
  std::vector<std::string> varied;  ///< names in which groups differ

  /// Its values of what is varied: "fcfs, muxtune".
  std::string name(const Group& group) const;
};

bool is_cluster_study(const std::filesystem::path& folder);
/// Throws Error where a file of it is malformed.
ClusterStudy read_cluster_study(const std::filesystem::path& folder);

}  // namespace braid::report
