#include "sim/cluster/study/study_folder.h"

#include <ostream>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"

namespace braid::sim {
namespace {

constexpr const char* kRuns = "runs";
constexpr const char* kMark = "study";
constexpr const char* kSummary = "summary.json";
/// Of each run, and what tells whether they are whole: a machine that stops may leave files without their ends.
constexpr const char* kParts[] = {"jobs.csv", "utilization.csv", kSummary};
constexpr const char* kWhole = "whole";

}  // namespace

std::string fingerprint(const StudySettings& settings, const StudyGrid& grid, const traces::Trace& trace,
                        const costmodel::Profile& profile) {
  std::string all = summary_of_study(settings, grid, trace, {}, {}) + costmodel::to_json(profile);
  for (const RunSettings& run : runs_of(settings, grid)) {
    all += fmt::format("{} {} {} {}", run.scheduler, run.policy, name(run.placement), run.seed);
    for (const auto& [swept, value] : run.swept) all += fmt::format(" {}={}", swept, value);
    all += '\n';
  }
  std::vector<double> numbers;
  for (const traces::Job& job : trace.jobs) {
    numbers.insert(numbers.end(), {job.submit_seconds, job.duration_seconds, static_cast<double>(job.gpus),
                                   static_cast<double>(job.priority), job.deadline_seconds, job.budget,
                                   static_cast<double>(job.virtual_cluster)});
    all += job.id + '\n';
  }
  for (const std::string& name : trace.virtual_clusters) all += name + '\n';
  all.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double));
  return hash_bytes(all);
}

StudyFolder::StudyFolder(std::filesystem::path folder, const std::string& fingerprint, bool resume)
    : folder_(std::move(folder)), fingerprint_(fingerprint) {
  const std::filesystem::path mark = folder_ / kRuns / kMark, summary = folder_ / kSummary;
  const bool begun = std::filesystem::exists(mark), complete = std::filesystem::exists(summary);
  if (begun && !resume)
    throw error("{}: holds an unfinished study; give --resume to go on with it, or --overwrite", folder_.string());
  const auto is_there = [&](const char* file) { return std::filesystem::exists(folder_ / file); };
  if (resume && complete && !begun &&
      (fingerprint_in(read_file(summary)).empty() || !is_there("jobs.csv") || !is_there("utilization.csv")))
    throw error("{}: holds a study that is damaged; give --overwrite to run it anew", folder_.string());
  const std::string held = begun ? read_file(mark) : resume && complete ? fingerprint_in(read_file(summary)) : "";
  if (!held.empty() && held != fingerprint)
    throw error("{}: holds a study of other settings or another trace; give those, or --overwrite", folder_.string());
  if (held.empty()) write_file(mark, fingerprint);
}

bool StudyFolder::is_complete() const {
  return !std::filesystem::exists(folder_ / kRuns);
}

bool StudyFolder::has(std::size_t run) const {
  std::string all;
  for (const char* what : kParts) {
    if (!std::filesystem::exists(part(run, what))) return false;
    all += read_file(part(run, what));
  }
  return std::filesystem::exists(part(run, kWhole)) && read_file(part(run, kWhole)) == hash_bytes(all);
}

void StudyFolder::put(std::size_t run, const RunSettings& settings, const RunResult& result) const {
  const std::string texts[] = {jobs_rows(settings, result), utilization_rows(settings, result),
                               summary_of(settings, result)};
  std::string all;
  for (std::size_t p = 0; p < std::size(kParts); ++p) {
    write_file(part(run, kParts[p]), texts[p]);
    all += texts[p];
  }
  write_file(part(run, kWhole), hash_bytes(all));
}

void StudyFolder::finish(std::size_t runs, const StudySettings& settings, const StudyGrid& grid,
                         const traces::Trace& trace) const {
  const auto join = [&](const char* what, const std::string& header) {
    write_file(folder_ / what, [&](std::ostream& out) {
      out << header;
      for (std::size_t run = 0; run < runs; ++run) out << read_file(part(run, what));
    });
  };
  join("jobs.csv", jobs_header(grid));
  join("utilization.csv", utilization_header(grid));
  std::vector<std::string> summaries;
  for (std::size_t run = 0; run < runs; ++run) summaries.push_back(read_file(part(run, "summary.json")));
  write_file(folder_ / kSummary, summary_of_study(settings, grid, trace, fingerprint_, summaries));
  std::filesystem::remove_all(folder_ / kRuns);
}

std::filesystem::path StudyFolder::part(std::size_t run, const char* what) const {
  return folder_ / kRuns / fmt::format("{:05}.{}", run, what);
}

}  // namespace braid::sim
