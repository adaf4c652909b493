#pragma once

#include <filesystem>

#include "sim/cluster/study/study_files.h"

namespace braid::sim {

/// What a study's results depend on, in one word.
std::string fingerprint(const StudySettings& settings, const StudyGrid& grid, const traces::Trace& trace,
                        const costmodel::Profile& profile);

/// The folder that a study writes to. Each run's part is kept under `runs/` as soon as it is there, so that a study
/// that was stopped goes on with what it has; when all are there they become jobs.csv, utilization.csv and
/// summary.json, the same bytes however often it was stopped.
class StudyFolder {
 public:
  /// Makes the folder; under `resume` one that holds a study of this fingerprint is gone on with. Throws Error for one
  /// that holds another study, or without `resume` an unfinished one.
  StudyFolder(std::filesystem::path folder, const std::string& fingerprint, bool resume);

  /// Nothing is left to do.
  bool is_complete() const;
  bool has(std::size_t run) const;
  /// Safe for use by several threads and processes, for unlike runs.
  void put(std::size_t run, const RunSettings& settings, const RunResult& result) const;

  /// Joins the parts of all runs. The folder holds the results and nothing else afterwards.
  void finish(std::size_t runs, const StudySettings& settings, const StudyGrid& grid, const traces::Trace& trace) const;

 private:
  std::filesystem::path part(std::size_t run, const char* what) const;

  std::filesystem::path folder_;
  std::string fingerprint_;
};

}  // namespace braid::sim
