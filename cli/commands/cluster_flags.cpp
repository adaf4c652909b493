#include "cli/commands/cluster_flags.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <boost/program_options/value_semantic.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/units.h"
#include "cli/commands/trace_input.h"
#include "planner/policies/registry.h"
#include "sim/cluster/scheduler.h"

namespace braid::cli {
namespace {

namespace po = boost::program_options;

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

/// Each of them is a run of its own.
std::vector<std::string> distinct_words_of(const std::string& text, const std::string& flag) {
  std::vector<std::string> words = words_of(text, flag);
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (std::find(words.begin(), word, *word) != word) throw error("--{} '{}' has '{}' twice", flag, text, *word);
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
  return {text.substr(0, equals), distinct_words_of(text.substr(equals + 1), "sweep " + text.substr(0, equals))};
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

/// No number that a flag may have.
constexpr int kLeftOut = std::numeric_limits<int>::min();

/// The words as given, before they mean anything.
struct Given {
  std::string schedulers = "fcfs", placements = "packed", jobs = "fine-tuning", job_gpus, horizon = "drain";
  std::string deadline_slack, budget_slack;
  std::int64_t priorities = kLeftOut;
  double gpu_mtbf_hours = kLeftOut, node_mtbf_hours = kLeftOut, repair_hours = 4, checkpoint_minutes = 30;
  std::string backbones = "llama2-7b", scaling = "out", elastic_gpus;
  std::string datasets = "sst2,qa,rte", batch_sizes = "2,4,8", adapter_ranks = "16";
  std::int64_t gpus = kLeftOut;
  std::vector<std::string> sweeps;
  double price = kLeftOut, load_gbs = 2;
  std::function<bool(const char* flag)> has;  // whether it was given
};

bool parse(const std::vector<std::string>& words, Given& given, ClusterFlags& flags) {
  sim::StudySettings& settings = flags.settings;
  CommandLine line("braid cluster [--trace FILE] [options]", flags.common);
  const auto add = [&](const char* name, auto* value, const std::string& what) {
    line.add().add_options()(name, po::value(value), what.c_str());
  };
  const auto add_default = [&](const char* name, auto* value, const std::string& what) {
    line.add().add_options()(name, po::value(value)->default_value(*value), what.c_str());
  };
  add("trace", &flags.trace, "of jobs; left out: MuxTune's week, generated");
  add_trace_reading(line, flags.reading);
  add("cluster", &flags.common.cluster, "cluster.yaml; left out: A40s, 4 a node, ib-100g");
  add("gpus", &given.gpus, "of the cluster; left out: 128, or the file's");
  add("profile", &flags.common.profile, "profile file; left out: derived from the datasheet");
  add_default("scheduler", &given.schedulers, "NAME,...; `braid schedulers` lists them");
  add("policy", &flags.common.policy, "NAME[:option=value]...,...; `braid policies` lists them; left out: muxtune");
  add_default("placement", &given.placements, "packed, spread, frag; commas between");
  add_default("seeds", &flags.grid.seeds, "how many, from --seed on");
  line.add_seed();
  add_default("jobs", &given.jobs, "fine-tuning, or as-recorded: each alone on its recorded GPUs for its duration");
  add("load", &settings.load, "draw arrivals together until it is offered");
  add_default("horizon", &given.horizon, "drain, or SECONDS after the first submission");
  add_default("backbone", &given.backbones, "that tasks are on; commas between: each job is on one of them");
  add_default("datasets", &given.datasets,
              "that tasks are drawn from: " + fmt::format("{}", fmt::join(sim::known_datasets(), ", ")));
  add_default("batch-sizes", &given.batch_sizes, "global batches that tasks are drawn from");
  add_default("adapter-ranks", &given.adapter_ranks, "of LoRA, that tasks are drawn from");
  add("instance-gpus", &settings.instance_gpus, "of one instance; left out: those of a node");
  add_default("scaling", &given.scaling,
              "out: instances of --instance-gpus; up: they get more GPUs as tasks join; up-then-out: up to that");
  add("elastic-gpus", &given.elastic_gpus,
      "GPUs that elastic schedulers give an instance; left out: doubling, up to two nodes");
  add("job-gpus", &given.job_gpus,
      "GPUs that a recorded duration is taken to be on: a number, or recorded; left out: those of an instance");
  add_default("most-tasks", &settings.most_tasks, "that share an instance");
  add("most-slowdown", &settings.most_slowdown, "of a task among others, over its steps alone");
  add_default("replan-seconds", &settings.replan_seconds, "that an instance stands still when a task joins or leaves");
  add_default("load-gbs", &given.load_gbs, "GB/s at which a backbone is loaded");
  add_default("audit", &settings.audited_share,
              "share of an instance's changes whose estimate is held against a replay");
  add("deadline-slack", &given.deadline_slack,
      "LOW:HIGH: jobs without a deadline get one, so many recorded durations after submission");
  add("budget-slack", &given.budget_slack,
      "LOW:HIGH: jobs without a budget get one, so many times what they cost alone");
  add("priorities", &given.priorities, "jobs get one of so many, in the place of the trace's");
  add("quotas", &flags.quotas, "NAME=WEIGHT,... of virtual clusters, for drf; left out: 1 each");
  add("gpu-mtbf-hours", &given.gpu_mtbf_hours, "mean time between failures of a GPU, exponential; left out: never");
  add("node-mtbf-hours", &given.node_mtbf_hours, "the same of a node with all of its GPUs");
  add_default("repair-hours", &given.repair_hours, "mean time until it is back, exponential");
  add("outages", &flags.outages, "CSV of from_s,to_s,node,gpu in the place of failures that are drawn");
  add_default("checkpoint-minutes", &given.checkpoint_minutes, "of an instance; work since the last is redone");
  add("gpu-hour-price", &given.price, "for `cost`");
  line.add().add_options()(
      "sweep", po::value(&given.sweeps)->composing(),
      fmt::format("NAME=VALUE,...; may be repeated: {}", fmt::join(sim::sweepable(), ", ")).c_str());
  line.add().add_options()("strict", po::bool_switch(&flags.strict), "a job larger than the cluster is an error");
  line.add_threads();
  line.add_out("folder for jobs.csv, utilization.csv and summary.json");
  line.add_timeline();
  line.add().add_options()("resume", po::bool_switch(&flags.resume),
                           "go on with what --out already holds of this study");
  line.later(
      {"columns",        "lenient",        "elastic-gpus",    "job-gpus",       "most-tasks",    "most-slowdown",
       "replan-seconds", "load-gbs",       "audit",           "deadline-slack", "budget-slack",  "priorities",
       "quotas",         "gpu-mtbf-hours", "node-mtbf-hours", "repair-hours",   "outages",       "checkpoint-minutes",
       "gpu-hour-price", "strict",         "datasets",        "batch-sizes",    "adapter-ranks", "scaling",
       "instance-gpus",  "timeline-out"});
  if (!line.parse(words)) return false;
  given.has = [=](const char* flag) { return line.given(flag); };
  return true;
}

void check_number(const char* flag, double value, bool may_be_zero) {
  if (std::isnan(value) || value < 0 || (value == 0 && !may_be_zero))
    throw error("--{} {} is not usable; give a number {}", flag, value, may_be_zero ? ">= 0" : "above 0");
}

/// "low:high", or one number for both.
sim::DrawnTerms::Range range_of(const std::string& text, const std::string& flag) {
  const std::size_t colon = text.find(':');
  const std::string words[] = {text.substr(0, colon), colon == std::string::npos ? text : text.substr(colon + 1)};
  double numbers[2] = {};
  for (int i = 0; i < 2; ++i) {
    char* end = nullptr;
    numbers[i] = std::strtod(words[i].c_str(), &end);
    if (words[i].empty() || *end != '\0' || !(numbers[i] > 0) || std::isinf(numbers[i]))
      throw error("--{} '{}' is not usable; give LOW:HIGH, numbers above 0", flag, text);
  }
  if (numbers[0] > numbers[1]) throw error("--{} '{}' is not usable; give the lower number first", flag, text);
  return {numbers[0], numbers[1]};
}

void resolve_terms(const Given& given, sim::DrawnTerms& terms) {
  if (!given.deadline_slack.empty()) terms.deadline_slack = range_of(given.deadline_slack, "deadline-slack");
  if (!given.budget_slack.empty()) terms.budget_slack = range_of(given.budget_slack, "budget-slack");
  if (given.priorities == kLeftOut) return;
  constexpr std::int64_t kMostPriorities = 1'000'000;
  if (given.priorities < 1 || given.priorities > kMostPriorities)
    throw error("--priorities {} is not usable; give 1 to {}", given.priorities, kMostPriorities);
  terms.priorities = static_cast<std::int32_t>(given.priorities);
}

/// After the cluster is known.
void resolve_failures(const Given& given, const std::string& outages, sim::StudySettings& settings) {
  check_number("repair-hours", given.repair_hours, false);
  check_number("checkpoint-minutes", given.checkpoint_minutes, false);
  settings.failures.repair_seconds = kHour * given.repair_hours;
  settings.checkpoint_seconds = kMinute * given.checkpoint_minutes;
  const auto rate = [](const char* flag, double hours, double& seconds) {
    if (hours == kLeftOut) return;
    check_number(flag, hours, false);
    seconds = kHour * hours;
  };
  rate("gpu-mtbf-hours", given.gpu_mtbf_hours, settings.failures.gpu_mtbf_seconds);
  rate("node-mtbf-hours", given.node_mtbf_hours, settings.failures.node_mtbf_seconds);
  if (outages.empty()) return;
  settings.outages = sim::read_outages(outages, settings.cluster.nodes, settings.cluster.gpus_per_node);
}

/// Flags that say how jobs fine-tune.
void refuse_fine_tuning(const Given& given) {
  for (const char* flag :
       {"policy", "profile", "backbone", "datasets", "batch-sizes", "adapter-ranks", "instance-gpus", "scaling",
        "elastic-gpus", "job-gpus", "most-tasks", "most-slowdown", "replan-seconds", "load-gbs", "audit"}) {
    if (given.has(flag))
      throw error("--{} is of fine-tuning tasks, and --jobs as-recorded has none; leave one of them out", flag);
  }
}

/// Flags that say more of what is not there.
void refuse_idle_flags(const Given& given, const ClusterFlags& flags) {
  const sim::StudyGrid& grid = flags.grid;
  const auto is_swept = [&](const char* name) {
    return std::any_of(grid.sweeps.begin(), grid.sweeps.end(), [&](const auto& sweep) { return sweep.first == name; });
  };
  const auto& names = grid.schedulers;
  const bool draws = flags.settings.failures.any() || is_swept("gpu-mtbf-hours") || is_swept("node-mtbf-hours");
  const bool shares = std::any_of(grid.policies.begin(), grid.policies.end(), [](const std::string& policy) {
    return planner::parse_policy(policy).policy->shares_backbone();
  });
  struct Rule {
    const char* flag;
    bool has_ground;
    const char* ground;
  };
  const Rule rules[] = {
      {"format", !flags.trace.empty(), "--trace"},
      {"lenient", !flags.trace.empty(), "--trace"},
      {"quotas", std::find(names.begin(), names.end(), "drf") != names.end(), "--scheduler drf"},
      {"elastic-gpus", std::any_of(names.begin(), names.end(), sim::is_elastic), "--scheduler goodput"},
      {"repair-hours", draws, "--gpu-mtbf-hours or --node-mtbf-hours"},
      {"checkpoint-minutes", draws || !flags.outages.empty(), "failures"},
      {"most-tasks", shares, "a policy that shares backbones"},
      {"most-slowdown", shares, "a policy that shares backbones"},
      {"replan-seconds", shares, "a policy that shares backbones"},
      {"resume", !flags.common.out.empty(), "--out"},
  };
  for (const auto& [name, values] : grid.sweeps) {
    // --outages are read for the cluster of --gpus.
    if (name != "gpus" && given.has(name.c_str()))
      throw error("--{} and --sweep {} are both given; give one of them", name, name);
  }
  for (const Rule& rule : rules) {
    if ((given.has(rule.flag) || is_swept(rule.flag)) && !rule.has_ground)
      throw error("--{} means nothing without {}; give both, or none", rule.flag, rule.ground);
  }
}

/// Makes sense of the given.
void resolve(const Given& given, ClusterFlags& flags) {
  sim::StudySettings& settings = flags.settings;
  sim::StudyGrid& grid = flags.grid;
  if (given.jobs != "fine-tuning" && given.jobs != "as-recorded")
    throw error("--jobs {} is not known; give fine-tuning or as-recorded", given.jobs);
  settings.as_recorded = given.jobs == "as-recorded";
  if (settings.as_recorded) refuse_fine_tuning(given);
  if (flags.common.policy.empty()) flags.common.policy = "muxtune";
  settings.scaling = sim::parse_scaling(given.scaling);
  if (!given.elastic_gpus.empty()) settings.elastic_gpus = counts_of(given.elastic_gpus, "elastic-gpus");
  settings.configurations.backbones = words_of(given.backbones, "backbone");
  settings.configurations.datasets = words_of(given.datasets, "datasets");
  settings.configurations.batch_sizes = counts_of(given.batch_sizes, "batch-sizes");
  settings.configurations.ranks = counts_of(given.adapter_ranks, "adapter-ranks");
  settings.recorded_job_gpus = given.job_gpus == "recorded";
  if (!given.job_gpus.empty() && !settings.recorded_job_gpus)
    settings.job_gpus = counts_of(given.job_gpus, "job-gpus")[0];
  if (given.horizon != "drain") {
    char* end = nullptr;
    settings.horizon_seconds = std::strtod(given.horizon.c_str(), &end);
    if (*end != '\0' || !(settings.horizon_seconds > 0))
      throw error("--horizon '{}' is not usable; give drain, or seconds above 0", given.horizon);
  }
  if (given.has("load")) check_number("load", settings.load, false);
  if (given.has("instance-gpus") && settings.instance_gpus < 1)
    throw error("--instance-gpus {} is not usable; give 1 or more", settings.instance_gpus);
  check_number("most-slowdown", settings.most_slowdown, false);
  check_number("replan-seconds", settings.replan_seconds, true);
  check_number("load-gbs", given.load_gbs, false);
  if (!(settings.audited_share >= 0 && settings.audited_share <= 1))
    throw error("--audit {} is no share; give 0 to 1", settings.audited_share);
  settings.load_bytes_per_second = given.load_gbs * 1e9;
  if (given.price != kLeftOut) {
    check_number("gpu-hour-price", given.price, true);
    settings.gpu_hour_price = given.price;
  }
  settings.cluster = flags.common.cluster.empty() ? default_cluster() : workload::read_cluster(flags.common.cluster);
  if (settings.cluster.own())
    throw error("{}: a cluster of gpu: {} is what braid measures itself, and has no GPUs to share out; name one",
                flags.common.cluster, settings.cluster.gpu);
  if (given.gpus != kLeftOut || flags.common.cluster.empty())
    sim::set_gpus(settings.cluster, given.gpus != kLeftOut ? given.gpus : kGpus);
  resolve_terms(given, settings.terms);
  resolve_failures(given, flags.outages, settings);
  grid.schedulers = distinct_words_of(given.schedulers, "scheduler");
  grid.policies = distinct_words_of(flags.common.policy, "policy");
  grid.placements.clear();
  for (const std::string& word : distinct_words_of(given.placements, "placement"))
    grid.placements.push_back(sim::parse_placement(word));
  if (grid.seeds < 1) throw error("--seeds {}: give 1 or more", grid.seeds);
  grid.first_seed = static_cast<std::uint64_t>(flags.common.seed);
  for (const std::string& sweep : given.sweeps) grid.sweeps.push_back(sweep_of(sweep));
  refuse_idle_flags(given, flags);
  if (flags.resume && flags.common.overwrite && flags.common.timeline_out.empty())
    throw error("--resume goes on with what --out holds, and --overwrite replaces it; give one of them");
  settings.keeps_timeline = !flags.common.timeline_out.empty();
}

}  // namespace

std::optional<ClusterFlags> parse_cluster_flags(const std::vector<std::string>& words) {
  Given given;
  ClusterFlags flags;
  if (!parse(words, given, flags)) return std::nullopt;
  resolve(given, flags);
  return flags;
}

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

}  // namespace braid::cli
