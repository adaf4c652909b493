#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace braid::traces {

/// A job as its cluster recorded it.
struct Job {
  std::string id;                     ///< as in the file; the row's number where it has none
  double submit_seconds = 0;          ///< since the trace's zero
  double duration_seconds = 0;        ///< in service, >= 0
  std::int32_t gpus = 1;              ///< >= 1, given together
  std::int32_t virtual_cluster = -1;  ///< of Trace::virtual_clusters; -1: none
  std::int32_t priority = 0;          ///< larger first
  double deadline_seconds = std::numeric_limits<double>::infinity();  ///< since the trace's zero
  double budget = std::numeric_limits<double>::infinity();            ///< what it may cost, in GPU-hours
  bool operator==(const Job&) const = default;
};

/// Why a row of a trace became no job.
enum class Skipped : std::uint8_t {
  without_gpu,  ///< asks for none
  never_ran,    ///< was never started
  unfinished,   ///< has no end: still running when the trace was taken, or lost
  bad,          ///< cannot be understood; left out under `lenient`
};

/// What was irregular in a file, and counted.
struct Irregularities {
  std::int64_t rows = 0;  ///< jobs found, those skipped included
  std::map<Skipped, std::int64_t> skipped;
  std::int64_t attempts_left_out = 0;  ///< without a start or an end, of jobs that have others
  std::int64_t blank_lines = 0;
  std::int64_t out_of_order = 0;  ///< rows submitted before the row above them
  std::string first_bad;          ///< the message of the first bad row
  bool operator==(const Irregularities&) const = default;
};

/// Jobs in the order of their submission; those of one instant in the order of their rows.
struct Trace {
  std::string source;                       ///< file or generator
  std::string format;                       ///< one of trace_formats()
  std::string zero;                         ///< the date of zero ("2017-10-09"); empty where times are bare seconds
  std::vector<std::string> unread_columns;  ///< of a CSV file, those that say nothing of its jobs here
  std::vector<Job> jobs;
  std::vector<std::string> virtual_clusters;  ///< in the order of their first job
  Irregularities irregularities;
};

}  // namespace braid::traces
