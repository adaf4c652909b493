#include "sim/cluster/study/study_files.h"

#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/csv.h"
#include "base/file.h"
#include "sim/cluster/moments.h"

namespace braid::sim {
namespace {

using nlohmann::ordered_json;

std::string with_swept(std::string columns, const StudyGrid& grid) {
  for (const auto& [name, values] : grid.sweeps) columns += ',' + csv_field(name);
  return columns + '\n';
}

/// ",scheduler,policy,placement,seed" and what is swept: the same in every row of a run.
std::string run_fields(const RunSettings& settings) {
  std::string fields = fmt::format(",{},{},{},{}", settings.scheduler, csv_field(settings.policy),
                                   name(settings.placement), settings.seed);
  for (const auto& [swept, value] : settings.swept) fields += ',' + csv_field(value);
  return fields + '\n';
}

/// Nothing for what never was.
std::string moment(double seconds) {
  return std::isinf(seconds) ? "" : fmt::format("{:.3f}", seconds);
}

ordered_json described(const RunSettings& settings) {
  ordered_json run = {{"scheduler", settings.scheduler},
                      {"policy", settings.policy},
                      {"placement", std::string(name(settings.placement))},
                      {"seed", settings.seed}};
  for (const auto& [swept, value] : settings.swept) run[swept] = value;
  return run;
}

/// What tells groups of runs apart that differ in their seeds alone.
ordered_json without_seed(const ordered_json& run) {
  ordered_json group = ordered_json::object();
  for (const auto& [key, value] : run.items()) {
    if (key == "seed") continue;
    if (key == "offered_load") break;
    group[key] = value;
  }
  return group;
}

ordered_json limit(double value) {
  return std::isinf(value) ? ordered_json(nullptr) : ordered_json(value);
}

ordered_json described_failures(const StudySettings& settings) {
  if (settings.outages.empty() && !settings.failures.any()) return nullptr;
  ordered_json described = {{"checkpoint_seconds", settings.checkpoint_seconds}};
  if (settings.outages.empty()) {
    described["gpu_mtbf_seconds"] = limit(settings.failures.gpu_mtbf_seconds);
    described["node_mtbf_seconds"] = limit(settings.failures.node_mtbf_seconds);
    described["repair_seconds"] = settings.failures.repair_seconds;
    return described;
  }
  std::string outages;
  for (const Outage& outage : settings.outages)
    outages += fmt::format("{} {} {} {}\n", outage.from_seconds, outage.to_seconds, outage.gpus.node, outage.gpus.gpus);
  described["outages"] = settings.outages.size();
  described["outages_hash"] = hash_bytes(outages);
  return described;
}

ordered_json described(const StudySettings& settings) {
  const workload::Cluster& cluster = settings.cluster;
  ordered_json described = {{"gpu", cluster.gpu},
                            {"gpus", cluster.gpus()},
                            {"gpus_per_node", cluster.gpus_per_node},
                            {"jobs", settings.as_recorded ? "as-recorded" : "fine-tuning"},
                            {"load", settings.load > 0 ? ordered_json(settings.load) : ordered_json(nullptr)},
                            {"horizon_seconds", limit(settings.horizon_seconds)},
                            {"failures", described_failures(settings)}};
  if (settings.gpu_hour_price) described["gpu_hour_price"] = *settings.gpu_hour_price;
  if (!settings.quotas.empty()) described["quotas"] = settings.quotas;
  const DrawnTerms& terms = settings.terms;
  if (terms.deadline_slack) described["deadline_slack"] = {terms.deadline_slack->least, terms.deadline_slack->most};
  if (terms.budget_slack) described["budget_slack"] = {terms.budget_slack->least, terms.budget_slack->most};
  if (terms.priorities > 0) described["priorities"] = terms.priorities;
  if (settings.as_recorded) return described;
  const Configurations& from = settings.configurations;
  described["backbones"] = from.backbones;
  described["datasets"] = from.datasets;
  described["batch_sizes"] = from.batch_sizes;
  described["adapter_ranks"] = from.ranks;
  described["instance_gpus"] = settings.instance_gpus > 0 ? settings.instance_gpus : cluster.gpus_per_node;
  described["scaling"] = name(settings.scaling);
  if (!settings.elastic_gpus.empty()) described["elastic_gpus"] = settings.elastic_gpus;
  described["job_gpus"] = settings.recorded_job_gpus ? ordered_json("recorded")
                          : settings.job_gpus > 0    ? ordered_json(settings.job_gpus)
                                                     : described["instance_gpus"];
  described["most_tasks"] = settings.most_tasks;
  described["most_slowdown"] = limit(settings.most_slowdown);
  described["load_bytes_per_second"] = settings.load_bytes_per_second;
  described["replan_seconds"] = settings.replan_seconds;
  described["audited_share"] = settings.audited_share;
  return described;
}

ordered_json means_of(const std::vector<std::vector<Metric>>& runs) {
  ordered_json means = ordered_json::object();
  for (const SeedMean& mean : over_seeds(runs)) {
    means[mean.name] = {{"mean", mean.mean}};
    if (mean.half_width) means[mean.name]["ci95"] = *mean.half_width;
  }
  return means;
}

}  // namespace

std::string jobs_header(const StudyGrid& grid) {
  return with_swept(
      "job_id,submit_s,start_s,finish_s,gpus,shared,queue_s,run_s,tokens,instance,preemptions,scheduler,policy,"
      "placement,seed",
      grid);
}

std::string jobs_rows(const RunSettings& settings, const RunResult& result) {
  fmt::memory_buffer text;
  const auto put = std::back_inserter(text);
  const std::string run = run_fields(settings);
  for (std::size_t j = 0; j < result.jobs.size(); ++j) {
    const ClusterJob& job = result.jobs[j];
    const JobOutcome& outcome = result.run.outcomes[j];
    fmt::format_to(put, "{},{:.3f},", csv_field(result.trace->jobs[j].id), job.submit_seconds);
    if (outcome.start_seconds == kNever) {
      fmt::format_to(put, ",,{},0,,,,,", job.gpus);
    } else {
      const double queued = outcome.finish_seconds - job.submit_seconds - outcome.run_seconds;
      const double tokens = outcome.steps * result.step_tokens[static_cast<std::size_t>(job.kind)];
      fmt::format_to(put, "{:.3f},{},{},{:d},{},{:.3f},{:.3f},{},{}", outcome.start_seconds,
                     moment(outcome.finish_seconds), outcome.gpus, outcome.shared, moment(queued), outcome.run_seconds,
                     tokens, outcome.instance, outcome.preemptions);
    }
    text.append(run);
  }
  return to_string(text);
}

std::string utilization_header(const StudyGrid& grid) {
  return with_swept("from_s,gpus,running,waiting,tokens_per_second,scheduler,policy,placement,seed", grid);
}

std::string utilization_rows(const RunSettings& settings, const RunResult& result) {
  fmt::memory_buffer text;
  const auto put = std::back_inserter(text);
  const std::string run = run_fields(settings);
  const Usage& usage = result.run.usage;
  for (std::size_t b = 0; b < usage.bins.size(); ++b) {
    const double from = usage.first_seconds + static_cast<double>(b) * usage.bin_seconds;
    const double span = std::min(usage.bin_seconds, usage.last_seconds - from);
    if (span <= 0) continue;
    const Usage::Bin& bin = usage.bins[b];
    fmt::format_to(put, "{:.3f},{:.3f},{:.3f},{:.3f},{:.3f}", from, bin.gpus, bin.running, bin.waiting,
                   bin.tokens / span);
    text.append(run);
  }
  return to_string(text);
}

std::string summary_of(const RunSettings& settings, const RunResult& result) {
  ordered_json run = described(settings);
  run["offered_load"] = limit(result.offered_load);
  ordered_json metrics = ordered_json::object();
  for (const Metric& metric : result.metrics) metrics[metric.name] = metric.value;
  run["metrics"] = metrics;
  if (result.errors)
    run["estimates"] = {{"audited", result.errors->audited},
                        {"error_median", result.errors->median},
                        {"error_p99", result.errors->p99},
                        {"error_max", result.errors->most}};
  ordered_json rejected = ordered_json::array();
  for (std::size_t j = 0; j < result.jobs.size(); ++j) {
    if (result.run.outcomes[j].rejected) rejected.push_back(result.trace->jobs[j].id);
  }
  if (!rejected.empty()) run["rejected"] = rejected;
  return run.dump();
}

std::string summary_of_study(const StudySettings& settings, const StudyGrid& grid, const traces::Trace& trace,
                             const std::string& fingerprint, const std::vector<std::string>& runs) {
  ordered_json parts = ordered_json::array(), groups = ordered_json::array();
  std::vector<std::vector<Metric>> seeds;
  for (const std::string& text : runs) {
    const ordered_json& part = parts.emplace_back(ordered_json::parse(text));
    std::vector<Metric>& metrics = seeds.emplace_back();
    for (const auto& [name, value] : part["metrics"].items()) metrics.push_back({name, value.get<double>()});
    if (static_cast<std::int64_t>(seeds.size()) < grid.seeds) continue;
    ordered_json group = without_seed(part);
    group["seeds"] = grid.seeds;
    group["metrics"] = means_of(seeds);
    groups.push_back(std::move(group));
    seeds.clear();
  }
  return ordered_json{{"format", 1},
                      {"fingerprint", fingerprint},
                      {"trace", {{"source", trace.source}, {"jobs", trace.jobs.size()}}},
                      {"settings", described(settings)},
                      {"groups", groups},
                      {"runs", parts}}
             .dump(1) +
         "\n";
}

std::string fingerprint_in(const std::string& summary) {
  const ordered_json study = ordered_json::parse(summary, nullptr, false);
  const bool is_study = study.is_object() && study.contains("fingerprint") && study["fingerprint"].is_string();
  return is_study ? study["fingerprint"].get<std::string>() : "";
}

}  // namespace braid::sim
