#include <algorithm>
#include <cmath>
#include <filesystem>
#include <thread>

#include <boost/program_options/value_semantic.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "cli/cluster_table.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/profiles.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/trace_input.h"
#include "exec/communicator.h"
#include "sim/cluster/cluster_timeline.h"
#include "sim/cluster/study_folder.h"
#include "traces/generate.h"

namespace braid::cli {
namespace {

namespace po = boost::program_options;

/// Estimates may be off by so much at their 99th percentile.
constexpr double kErrorAllowed = 0.02;

/// Of MuxTune's study (§5.4).
constexpr std::int64_t kGpus = 128;

/// The words of a list with commas, none of them empty.
std::vector<std::string> words_of(const std::string& text, const std::string& flag) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    words.push_back(text.substr(at, end - at));
    if (words.back().empty()) throw error("--{} '{}' has an empty word; give words with commas between", flag, text);
    at = end + 1;
  }
  return words;
}

std::vector<std::int64_t> counts_of(const std::string& text, const std::string& flag) {
  std::vector<std::int64_t> counts;
  for (const std::string& word : words_of(text, flag)) {
    char* end = nullptr;
    counts.push_back(std::strtoll(word.c_str(), &end, 10));
    if (*end != '\0' || counts.back() < 1) throw error("--{} '{}': give whole numbers above 0", flag, text);
  }
  return counts;
}

/// "name=value,value".
std::pair<std::string, std::vector<std::string>> sweep_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw error("--sweep '{}' is not usable; give NAME=VALUE,VALUE, of {}", text, fmt::join(sim::sweepable(), ", "));
  return {text.substr(0, equals), words_of(text.substr(equals + 1), "sweep " + text.substr(0, equals))};
}

/// A40s, four a node.
workload::Cluster default_cluster() {
  workload::Cluster cluster;
  cluster.gpu = "a40";
  cluster.gpus_per_node = 4;
  cluster.intra_node = costmodel::named_link("nvlink", costmodel::device_of("a40"));
  cluster.inter_node = costmodel::named_link("ib-100g", costmodel::device_of("a40"));
  return cluster;
}

/// The words as given, before they mean anything.
struct Flags {
  CommonFlags common;
  std::string trace, schedulers = "fcfs", placements = "packed", jobs = "fine-tuning", job_gpus, horizon = "drain";
  std::string outages, quotas;
  double gpu_mtbf_hours = -1, node_mtbf_hours = -1, repair_hours = 4, checkpoint_minutes = 30;
  std::string backbones = "llama2-7b", scaling = "out", elastic_gpus;
  std::string datasets = "sst2,qa,rte", batch_sizes = "2,4,8", adapter_ranks = "16";
  traces::ReadOptions reading;
  std::int64_t gpus = -1;  // left out
  std::vector<std::string> sweeps;
  double price = -1, load_gbs = 2;
  bool strict = false, resume = false;
  sim::StudySettings settings;
  sim::StudyGrid grid;
};

bool parse(const std::vector<std::string>& words, Flags& flags) {
  sim::StudySettings& settings = flags.settings;
  CommandLine line("braid cluster [--trace FILE] [options]", flags.common);
  const auto add = [&](const char* name, auto* value, const std::string& what) {
    line.add().add_options()(name, po::value(value), what.c_str());
  };
  const auto add_default = [&](const char* name, auto* value, const std::string& what) {
    line.add().add_options()(name, po::value(value)->default_value(*value), what.c_str());
  };
  std::string schedulers = "NAME,...";
  for (const sim::SchedulerKind& kind : sim::scheduler_kinds())
    schedulers += fmt::format("\n{}: {}", kind.name, kind.what);
  add("trace", &flags.trace, "of jobs; left out: MuxTune's week, generated");
  add_trace_reading(line, flags.reading);
  add("cluster", &flags.common.cluster, "cluster.yaml; left out: A40s, 4 a node, ib-100g");
  add("gpus", &flags.gpus, "of the cluster; left out: 128, or the file's");
  add("profile", &flags.common.profile, "profile file; left out: derived from the datasheet");
  add_default("scheduler", &flags.schedulers, schedulers);
  add("policy", &flags.common.policy, "NAME[:option=value]...,...; see `braid plan --help`; left out: muxtune");
  add_default("placement", &flags.placements, "packed, spread, frag; commas between");
  add_default("seeds", &flags.grid.seeds, "how many, from --seed on");
  line.add_seed();
  add_default("jobs", &flags.jobs, "fine-tuning, or as-recorded: each alone on its recorded GPUs for its duration");
  add("load", &settings.load, "draw arrivals together until it is offered");
  add_default("horizon", &flags.horizon, "drain, or SECONDS after the first submission");
  add_default("backbone", &flags.backbones, "that tasks are on; commas between: each job is on one of them");
  add_default("datasets", &flags.datasets,
              "that tasks are drawn from: " + fmt::format("{}", fmt::join(sim::known_datasets(), ", ")));
  add_default("batch-sizes", &flags.batch_sizes, "global batches that tasks are drawn from");
  add_default("adapter-ranks", &flags.adapter_ranks, "of LoRA, that tasks are drawn from");
  add("instance-gpus", &settings.instance_gpus, "of one instance; left out: those of a node");
  add_default("scaling", &flags.scaling,
              "out: instances of --instance-gpus; up: they get more GPUs as tasks join; up-then-out: up to that");
  add("elastic-gpus", &flags.elastic_gpus,
      "GPUs that elastic schedulers give an instance; left out: doubling, up to two nodes");
  add("job-gpus", &flags.job_gpus,
      "GPUs that a recorded duration is taken to be on: a number, or recorded; left out: those of an instance");
  add_default("most-tasks", &settings.most_tasks, "that share an instance");
  add("most-slowdown", &settings.most_slowdown, "of a task among others, over its steps alone");
  add_default("replan-seconds", &settings.replan_seconds, "that an instance stands still when a task joins or leaves");
  add_default("load-gbs", &flags.load_gbs, "GB/s at which a backbone is loaded");
  add_default("audit", &settings.audited_share,
              "share of an instance's changes whose estimate is held against a replay");
  add("quotas", &flags.quotas, "NAME=WEIGHT,... of virtual clusters, for drf; left out: 1 each");
  add("gpu-mtbf-hours", &flags.gpu_mtbf_hours, "mean time between failures of a GPU, exponential; left out: never");
  add("node-mtbf-hours", &flags.node_mtbf_hours, "the same of a node with all of its GPUs");
  add_default("repair-hours", &flags.repair_hours, "mean time until it is back, exponential");
  add("outages", &flags.outages, "CSV of from_s,to_s,node,gpu in the place of failures that are drawn");
  add_default("checkpoint-minutes", &flags.checkpoint_minutes, "of an instance; work since the last is redone");
  add("gpu-hour-price", &flags.price, "for `cost`");
  line.add().add_options()(
      "sweep", po::value(&flags.sweeps)->composing(),
      fmt::format("NAME=VALUE,...; may be repeated: {}", fmt::join(sim::sweepable(), ", ")).c_str());
  line.add().add_options()("strict", po::bool_switch(&flags.strict), "a job larger than the cluster is an error");
  line.add_threads();
  line.add_out("folder for jobs.csv, utilization.csv and summary.json");
  line.add_timeline();
  line.add().add_options()("resume", po::bool_switch(&flags.resume),
                           "go on with what --out already holds of this study");
  return line.parse(words);
}

void check_number(const char* flag, double value, bool may_be_zero) {
  if (std::isnan(value) || value < 0 || (value == 0 && !may_be_zero))
    throw error("--{} {} is not usable; give a number {}", flag, value, may_be_zero ? ">= 0" : "above 0");
}

/// After the cluster is known.
void resolve_failures(Flags& flags) {
  constexpr double kMinute = 60, kHour = 3600;
  sim::StudySettings& settings = flags.settings;
  check_number("repair-hours", flags.repair_hours, false);
  check_number("checkpoint-minutes", flags.checkpoint_minutes, false);
  settings.failures.repair_seconds = kHour * flags.repair_hours;
  settings.checkpoint_seconds = kMinute * flags.checkpoint_minutes;
  const auto rate = [](const char* flag, double hours, double& seconds) {
    if (hours == -1) return;
    check_number(flag, hours, false);
    seconds = kHour * hours;
  };
  rate("gpu-mtbf-hours", flags.gpu_mtbf_hours, settings.failures.gpu_mtbf_seconds);
  rate("node-mtbf-hours", flags.node_mtbf_hours, settings.failures.node_mtbf_seconds);
  if (flags.outages.empty()) return;
  if (settings.failures.any()) throw error("--outages takes the place of failures that are drawn; leave one out");
  settings.outages = sim::read_outages(flags.outages, settings.cluster.nodes, settings.cluster.gpus_per_node);
}

/// Makes sense of the words.
void resolve(Flags& flags) {
  sim::StudySettings& settings = flags.settings;
  sim::StudyGrid& grid = flags.grid;
  if (flags.jobs != "fine-tuning" && flags.jobs != "as-recorded")
    throw error("--jobs {} is not known; give fine-tuning or as-recorded", flags.jobs);
  settings.as_recorded = flags.jobs == "as-recorded";
  if (settings.as_recorded && !flags.common.policy.empty())
    throw error("--policy {} fine-tunes tasks, and --jobs as-recorded has none; leave one of them out",
                flags.common.policy);
  if (flags.common.policy.empty()) flags.common.policy = "muxtune";
  settings.scaling = sim::parse_scaling(flags.scaling);
  if (!flags.elastic_gpus.empty()) settings.elastic_gpus = counts_of(flags.elastic_gpus, "elastic-gpus");
  settings.configurations.backbones = words_of(flags.backbones, "backbone");
  settings.configurations.datasets = words_of(flags.datasets, "datasets");
  settings.configurations.batch_sizes = counts_of(flags.batch_sizes, "batch-sizes");
  settings.configurations.ranks = counts_of(flags.adapter_ranks, "adapter-ranks");
  settings.recorded_job_gpus = flags.job_gpus == "recorded";
  if (!flags.job_gpus.empty() && !settings.recorded_job_gpus)
    settings.job_gpus = counts_of(flags.job_gpus, "job-gpus")[0];
  if (flags.horizon != "drain") {
    char* end = nullptr;
    settings.horizon_seconds = std::strtod(flags.horizon.c_str(), &end);
    if (*end != '\0' || !(settings.horizon_seconds > 0))
      throw error("--horizon '{}' is not usable; give drain, or seconds above 0", flags.horizon);
  }
  check_number("load", settings.load, true);
  check_number("most-slowdown", settings.most_slowdown, false);
  check_number("replan-seconds", settings.replan_seconds, true);
  check_number("load-gbs", flags.load_gbs, false);
  if (!(settings.audited_share >= 0 && settings.audited_share <= 1))
    throw error("--audit {} is no share; give 0 to 1", settings.audited_share);
  settings.load_bytes_per_second = flags.load_gbs * 1e9;
  if (flags.price >= 0) settings.gpu_hour_price = flags.price;
  settings.cluster = flags.common.cluster.empty() ? default_cluster() : workload::read_cluster(flags.common.cluster);
  if (settings.cluster.gpu == "cpu")
    throw error("{}: a cluster of CPUs has no GPUs to share out; name a GPU", flags.common.cluster);
  if (flags.gpus >= 0 || flags.common.cluster.empty())
    sim::set_gpus(settings.cluster, flags.gpus >= 0 ? flags.gpus : kGpus);
  resolve_failures(flags);
  grid.schedulers = words_of(flags.schedulers, "scheduler");
  grid.policies = words_of(flags.common.policy, "policy");
  grid.placements.clear();
  for (const std::string& word : words_of(flags.placements, "placement"))
    grid.placements.push_back(sim::parse_placement(word));
  if (grid.seeds < 1) throw error("--seeds {}: give 1 or more", grid.seeds);
  grid.first_seed = static_cast<std::uint64_t>(flags.common.seed);
  for (const std::string& sweep : flags.sweeps) grid.sweeps.push_back(sweep_of(sweep));
  settings.keeps_timeline = !flags.common.timeline_out.empty();
}

traces::Trace trace_of(const Flags& flags) {
  if (!flags.trace.empty()) return traces::read_trace(flags.trace, flags.reading);
  traces::Generator generator;
  generator.seed = static_cast<std::uint64_t>(flags.common.seed);
  return traces::generate(generator);
}

/// "name=weight,name=weight", of virtual clusters that the trace has.
std::map<std::string, double> quotas_of(const std::string& text, const traces::Trace& trace) {
  std::map<std::string, double> quotas;
  if (text.empty()) return quotas;
  for (const std::string& word : words_of(text, "quotas")) {
    const std::size_t equals = word.rfind('=');
    const std::string name = word.substr(0, equals);
    char* end = nullptr;
    const double weight = equals == std::string::npos ? 0 : std::strtod(word.c_str() + equals + 1, &end);
    if (!end || *end != '\0' || !(weight > 0) || std::isinf(weight))
      throw error("--quotas '{}' is not usable; give NAME=WEIGHT with weights above 0", word);
    const auto& known = trace.virtual_clusters;
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw error("--quotas: the trace has no virtual cluster '{}'; it has {}", name,
                  known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
    quotas[name] = weight;
  }
  return quotas;
}

/// Under --strict.
void refuse_large_jobs(const traces::Trace& trace, const std::vector<sim::RunSettings>& runs) {
  for (const sim::RunSettings& run : runs) {
    for (const traces::Job& job : trace.jobs) {
      if (run.settings.as_recorded && job.gpus > run.settings.cluster.gpus())
        throw error("{}: job '{}' has {} GPUs, and the cluster {}; leave --strict out to have it rejected",
                    trace.source, job.id, job.gpus, run.settings.cluster.gpus());
    }
  }
}

/// The runs of this rank, on all of its threads.
class Runner {
 public:
  Runner(const Flags& flags, sim::Study& study, const std::vector<sim::RunSettings>& runs, exec::Communicator& ranks)
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
        summaries_[r] = sim::summary_of(runs_[r], result, study_.trace());
        if (folder_ && !is_there) folder_->put(r, runs_[r], result, study_.trace());
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

  const Flags& flags_;
  sim::Study& study_;
  const std::vector<sim::RunSettings>& runs_;
  exec::Communicator& ranks_;
  std::optional<sim::StudyFolder> folder_;
  std::vector<std::string> summaries_;  // where there is no folder
};

}  // namespace

int run_cluster(const std::vector<std::string>& words) {
  Flags flags;
  if (!parse(words, flags)) return kSuccess;
  resolve(flags);
  std::vector<sim::RunSettings> runs = sim::runs_of(flags.settings, flags.grid);
  if (flags.settings.keeps_timeline) {
    if (runs.size() > 1) throw error("--timeline-out is of one run, and these are {}; ask for one", runs.size());
    check_writable(flags.common.timeline_out);
  }
  const std::vector<workload::Workload> kinds = sim::configured_tasks(flags.settings.configurations);
  if (!flags.common.out.empty()) {
    if (!flags.resume) check_output_folder(flags.common.out, flags.common.overwrite);
    check_writable(std::filesystem::path(flags.common.out) / "summary.json");
  }
  const bool launched = exec::launched_ranks() > 1;
  if (launched && flags.common.out.empty()) throw error("several ranks meet in a folder; give --out");
  traces::Trace trace = trace_of(flags);
  if (flags.strict) refuse_large_jobs(trace, runs);
  flags.settings.quotas = quotas_of(flags.quotas, trace);
  runs = sim::runs_of(flags.settings, flags.grid);
  sim::Study study(std::move(trace), profile_for(flags.common, kinds.front(), flags.settings.cluster));
  const auto ranks = launched ? exec::make_mpi_communicator() : exec::make_local_communicator();
  set_thread_count(threads_of_rank(flags.common, ranks->size()));
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
  fmt::print(stderr, "error: estimates are off full replays by {:.1f} % at the 99th percentile, more than {:.0f} %\n",
             100 * error, 100 * kErrorAllowed);
  return kFailure;
}

}  // namespace braid::cli
