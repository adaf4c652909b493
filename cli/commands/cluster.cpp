#include <filesystem>
#include <optional>

#include <fmt/core.h>

#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "base/terminal.h"
#include "cli/command.h"
#include "cli/commands/cluster_flags.h"
#include "cli/commands/cluster_table.h"
#include "cli/support/profiles.h"
#include "cli/support/progress.h"
#include "cli/support/session.h"
#include "exec/ranks/communicator.h"
#include "sim/cluster/cluster_timeline.h"
#include "sim/cluster/study/study_folder.h"
#include "traces/generate.h"

namespace braid::cli {
namespace {

/// Estimates may be off by so much at their 99th percentile.
constexpr double kErrorAllowed = 0.02;

sim::Study study_of(const ClusterFlags& flags, costmodel::Profile profile) {
  if (!flags.trace.empty()) return {traces::read_trace(flags.trace, flags.reading), std::move(profile)};
  traces::Generator generator;
  generator.seed = flags.grid.first_seed;
  return {generator, std::move(profile)};
}

/// Under --strict.
void refuse_large_jobs(sim::Study& study, const std::vector<sim::RunSettings>& runs) {
  for (const sim::RunSettings& run : runs) {
    const std::optional<std::size_t> misfit = study.misfit(run);
    if (!misfit) continue;
    const traces::Job& job = study.trace().jobs[*misfit];
    const std::int64_t gpus = run.settings.cluster.gpus();
    const std::string why = run.settings.as_recorded
                                ? fmt::format("has {} GPUs, and the cluster {}", job.gpus, gpus)
                                : fmt::format(
                                      "is of a task that does not fit the memory of an instance under {}, by "
                                      "the draw of seed {}",
                                      run.policy, run.seed);
    throw error("{}: job '{}' {}; leave --strict out to have it rejected", study.trace().source, job.id, why);
  }
}

/// The runs of this rank, on all of its threads.
class Runner {
 public:
  Runner(const ClusterFlags& flags, sim::Study& study, const std::vector<sim::RunSettings>& runs,
         exec::Communicator& ranks)
      : flags_(flags), study_(study), runs_(runs), ranks_(ranks), summaries_(runs.size()) {
    if (flags.common.out.empty()) return;
    const std::string mark = sim::fingerprint(flags.settings, flags.grid, study.trace(), study.profile());
    if (ranks.rank() == 0) folder_.emplace(flags.common.out, mark, flags.resume);
    ranks.barrier();
    if (ranks.rank() != 0) folder_.emplace(flags.common.out, mark, true);
  }

  void run() {
    const bool has_timeline = !flags_.common.timeline_out.empty();
    if (folder_ && folder_->is_complete() && !has_timeline) return;
    Progress progress("cluster", flags_.common.quiet || ranks_.rank() != 0);
    std::vector<std::size_t> mine;
    for (std::size_t r = static_cast<std::size_t>(ranks_.rank()); r < runs_.size();
         r += static_cast<std::size_t>(ranks_.size()))
      mine.push_back(r);
    std::size_t done = 0;
    parallel_jobs(static_cast<std::int64_t>(mine.size()), [&](std::int64_t m) {
      const std::size_t r = mine[static_cast<std::size_t>(m)];
      const bool is_there = folder_ && (folder_->is_complete() || folder_->has(r));
      if (!is_there || has_timeline) {
        const sim::RunResult result = study_.run(runs_[r]);
        summaries_[r] = sim::summary_of(runs_[r], result);
        if (folder_ && !is_there) folder_->put(r, runs_[r], result);
        if (has_timeline) write_timeline(result.run);
      }
#pragma omp critical(braid_cluster_progress)
      progress.update(static_cast<double>(++done) / static_cast<double>(mine.size()));
    });
    ranks_.barrier();
  }

  /// On rank 0: summary.json.
  std::string finish() {
    if (!folder_) return sim::summary_of_study(flags_.settings, flags_.grid, study_.trace(), {}, summaries_);
    if (!folder_->is_complete()) folder_->finish(runs_.size(), flags_.settings, flags_.grid, study_.trace());
    return read_file(std::filesystem::path(flags_.common.out) / "summary.json");
  }

 private:
  void write_timeline(const sim::ClusterRun& run) const {
    std::vector<std::string> names;
    for (const traces::Job& job : study_.trace().jobs) names.push_back(job.id);
    write_file(flags_.common.timeline_out, [&](std::ostream& out) { sim::write_cluster_timeline(run, names, out); });
  }

  const ClusterFlags& flags_;
  sim::Study& study_;
  const std::vector<sim::RunSettings>& runs_;
  exec::Communicator& ranks_;
  std::optional<sim::StudyFolder> folder_;
  std::vector<std::string> summaries_;  // where there is no folder
};

/// It must not take the place of what the study reads or writes.
void check_timeline(const ClusterFlags& flags) {
  namespace fs = std::filesystem;
  const fs::path timeline = fs::weakly_canonical(flags.common.timeline_out);
  for (const std::string& input : {flags.trace, flags.outages, flags.common.cluster, flags.common.profile}) {
    if (!input.empty() && fs::weakly_canonical(input) == timeline)
      throw error("--timeline-out {}: is read by this study; give another file", flags.common.timeline_out);
  }
  if (!flags.common.out.empty() && timeline.parent_path() == fs::weakly_canonical(flags.common.out))
    throw error("--timeline-out {}: lies in --out, which holds the study's own files; give another folder",
                flags.common.timeline_out);
}

}  // namespace

int run_cluster(const std::vector<std::string>& words) {
  std::optional<ClusterFlags> parsed = parse_cluster_flags(words);
  if (!parsed) return kSuccess;
  ClusterFlags& flags = *parsed;
  std::vector<sim::RunSettings> runs = sim::runs_of(flags.settings, flags.grid);
  if (flags.settings.keeps_timeline) {
    if (runs.size() > 1) throw error("--timeline-out is of one run, and these are {}; ask for one", runs.size());
    check_timeline(flags);
    check_writable(flags.common.timeline_out);
  }
  const std::vector<workload::Workload> kinds = sim::configured_tasks(flags.settings.configurations);
  if (!flags.common.out.empty()) {
    if (!flags.resume) check_output_folder(flags.common.out, flags.common.overwrite);
    check_writable(std::filesystem::path(flags.common.out) / "summary.json");
  }
  const bool launched = exec::launched_ranks() > 1;
  if (launched && flags.common.out.empty()) throw error("several ranks meet in a folder; give --out");
  std::optional<costmodel::Profile> profile = given_profile(flags.common, flags.settings.cluster);
  BRAID_CHECK(profile.has_value(), "a cluster of '{}' without a profile", flags.settings.cluster.gpu);
  sim::Study study = study_of(flags, *std::move(profile));
  flags.settings.quotas = quotas_of(flags.quotas, study.trace());
  runs = sim::runs_of(flags.settings, flags.grid);
  const auto ranks = launched ? exec::make_mpi_communicator() : exec::make_local_communicator();
  set_thread_count(threads_of_rank(flags.common, ranks->size()));
  if (flags.strict) refuse_large_jobs(study, runs);
  if (ranks->rank() == 0 && !flags.common.json) print_study(study, flags.settings, kinds, runs);
  if (ranks->rank() == 0 && flags.common.overwrite && !flags.common.out.empty() && !flags.resume)
    std::filesystem::remove_all(std::filesystem::path(flags.common.out) / "runs");
  Runner runner(flags, study, runs, *ranks);
  runner.run();
  if (ranks->rank() != 0) return kSuccess;
  const std::string summary = runner.finish();
  if (flags.common.json) {
    fmt::print("{}", summary);
  } else {
    print_summary(summary);
  }
  const double error = worst_error(summary);
  if (error <= kErrorAllowed) return kSuccess;
  fmt::print(stderr, "{} estimates are off full replays by {:.1f} % at the 99th percentile, more than {:.0f} %\n",
             toned("error:", Tone::error, stderr), 100 * error, 100 * kErrorAllowed);
  return kFailure;
}

}  // namespace braid::cli
