#pragma once

#include <filesystem>

#include "sim/cluster/study/study.h"
#include "sim/cluster/study/study_grid.h"

// What a study leaves in its folder: jobs.csv, utilization.csv, summary.json.
namespace braid::sim {

/// Columns of jobs.csv, with those swept; docs/files.md says what they hold.
std::string jobs_header(const StudyGrid& grid);
/// The rows of one run, in the order of the trace.
std::string jobs_rows(const RunSettings& settings, const RunResult& result);

std::string utilization_header(const StudyGrid& grid);
std::string utilization_rows(const RunSettings& settings, const RunResult& result);

/// A run's part of summary.json.
std::string summary_of(const RunSettings& settings, const RunResult& result);

/// All of it, from its runs' parts: with means over seeds. `fingerprint` is study_folder.h's, which it keeps.
std::string summary_of_study(const StudySettings& settings, const StudyGrid& grid, const traces::Trace& trace,
                             const std::string& fingerprint, const std::vector<std::string>& runs);
/// Empty where this is no summary of a study.
std::string fingerprint_in(const std::string& summary);

}  // namespace braid::sim
