#include <algorithm>
#include <cmath>
#include <iostream>

#include <boost/program_options/value_semantic.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/commands/trace_input.h"
#include "cli/support/options.h"
#include "cli/support/results.h"
#include "traces/dates.h"
#include "traces/generate.h"
#include "traces/trace_statistics.h"
#include "traces/transform.h"
#include "traces/write_trace.h"

namespace braid::cli {
namespace {

namespace po = boost::program_options;
using traces::Trace;

constexpr std::size_t kClustersListed = 10;

/// What every action that reads a trace takes.
struct Input {
  std::string file;
  traces::ReadOptions options;

  void add_to(CommandLine& line) {
    line.add_positional("FILE", file);
    add_trace_reading(line, options);
  }
};

/// Where a trace goes: stdout, or --out.
void put(const Trace& trace, const CommonFlags& flags) {
  if (flags.out.empty()) {
    traces::write_trace(trace, std::cout);
    std::cout.flush();
    if (!std::cout) throw Failure("writing the trace failed; check where stdout goes");
    return;
  }
  write_file(flags.out, [&](std::ostream& out) { traces::write_trace(trace, out); });
  if (!flags.quiet)
    fmt::print(stderr, "wrote {}: {} jobs\n", flags.out, grouped(static_cast<double>(trace.jobs.size())));
}

void check_out(const CommonFlags& flags) {
  if (flags.out.empty()) return;
  if (std::filesystem::exists(flags.out) && !flags.overwrite)
    throw error("{}: exists; give another file or --overwrite", flags.out);
  check_writable(flags.out);
}

void print(const Trace& trace, const traces::TraceStatistics& statistics, std::int64_t gpus) {
  fmt::print("{} ({})\n", trace.source, trace.format);
  print_irregularities(trace);
  fmt::print("jobs                {}\n", grouped(static_cast<double>(statistics.jobs)));
  fmt::print("span                {:.2f} days{}\n", statistics.span_seconds / kDay,
             trace.zero.empty() ? "" : " from " + trace.zero);
  fmt::print("arrivals            {:.3f} jobs a minute, variation between {:.2f} (Poisson: 1)\n",
             statistics.jobs_per_minute, statistics.interarrival_variation);
  const auto [least, most] =
      std::minmax_element(statistics.jobs_per_minute_of_hour.begin(), statistics.jobs_per_minute_of_hour.end());
  fmt::print("  over the day      {:.3f} at {:02}:00 to {:.3f} at {:02}:00\n", *least,
             least - statistics.jobs_per_minute_of_hour.begin(), *most,
             most - statistics.jobs_per_minute_of_hour.begin());
  const traces::Distribution& duration_of = statistics.duration;
  fmt::print("duration            mean {:.1f} min, deviation {:.1f} min\n", duration_of.mean / 60,
             duration_of.deviation / 60);
  fmt::print("  median, p90, p99  {:.1f}, {:.1f}, {:.1f} min; {:.1f} to {:.1f} min\n", duration_of.median / 60,
             duration_of.p90 / 60, duration_of.p99 / 60, duration_of.least / 60, duration_of.most / 60);
  fmt::print("  longest 1 %       {:.1f} % of all GPU-hours\n", 100 * statistics.work_of_longest);
  fmt::print("GPUs of a job      ");
  for (const auto& [count, jobs] : statistics.jobs_by_gpus)
    fmt::print(" {}: {:.1f} %", count, 100.0 * static_cast<double>(jobs) / static_cast<double>(statistics.jobs));
  fmt::print("\nGPU-hours           {}\n", grouped(statistics.gpu_seconds / kHour));
  if (!statistics.virtual_clusters.empty()) {
    fmt::print("virtual clusters    {}\n", statistics.virtual_clusters.size());
    const std::size_t listed = std::min(kClustersListed, statistics.virtual_clusters.size());
    for (std::size_t i = 0; i < listed; ++i) {
      const auto& cluster = statistics.virtual_clusters[i];
      fmt::print("  {:17} {:>9} jobs, {:>9} GPU-hours\n", cluster.name, grouped(static_cast<double>(cluster.jobs)),
                 grouped(cluster.gpu_seconds / kHour));
    }
  }
  const double load = traces::offered_load(trace, gpus);
  if (std::isfinite(load)) {
    fmt::print("offered load        {:.2f} on {} GPUs; {:.2f} were each job on one GPU\n", load, gpus,
               traces::offered_load(trace, gpus, 1));
  } else {
    fmt::print("offered load        none: {}\n",
               statistics.jobs == 1 ? "one job alone has no rate of arrival" : "all jobs come at one moment");
  }
}

/// Names come from the file as they are; bytes that are no UTF-8 are replaced.
std::string to_json(const Trace& trace, const traces::TraceStatistics& statistics, std::int64_t gpus) {
  nlohmann::ordered_json skipped = nlohmann::ordered_json::object();
  for (const auto& [why, count] : trace.irregularities.skipped) skipped[std::string(name_of(why))] = count;
  nlohmann::ordered_json by_gpus = nlohmann::ordered_json::object();
  for (const auto& [count, jobs] : statistics.jobs_by_gpus) by_gpus[std::to_string(count)] = jobs;
  nlohmann::ordered_json clusters = nlohmann::ordered_json::array();
  for (const auto& cluster : statistics.virtual_clusters)
    clusters.push_back({{"name", cluster.name}, {"jobs", cluster.jobs}, {"gpu_seconds", cluster.gpu_seconds}});
  const traces::Distribution& each = statistics.duration;
  return nlohmann::ordered_json{
             {"format", 1},
             {"trace", trace.source},
             {"trace_format", trace.format},
             {"zero", trace.zero},
             {"rows", trace.irregularities.rows},
             {"skipped", skipped},
             {"attempts_left_out", trace.irregularities.attempts_left_out},
             {"blank_lines", trace.irregularities.blank_lines},
             {"out_of_order", trace.irregularities.out_of_order},
             {"unread_columns", trace.unread_columns},
             {"jobs", statistics.jobs},
             {"span_seconds", statistics.span_seconds},
             {"jobs_per_minute", statistics.jobs_per_minute},
             {"interarrival_variation", statistics.interarrival_variation},
             {"jobs_per_minute_of_hour", statistics.jobs_per_minute_of_hour},
             {"duration_seconds",
              {{"mean", each.mean},
               {"deviation", each.deviation},
               {"median", each.median},
               {"p90", each.p90},
               {"p99", each.p99},
               {"least", each.least},
               {"most", each.most}}},
             {"work_of_longest_1_percent", statistics.work_of_longest},
             {"jobs_by_gpus", by_gpus},
             {"gpu_seconds", statistics.gpu_seconds},
             {"virtual_clusters", clusters},
             {"gpus", gpus},
             {"offered_load", traces::offered_load(trace, gpus)},
             {"offered_load_one_gpu_a_job", traces::offered_load(trace, gpus, 1)},
         }
             .dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

int run_stats(const std::vector<std::string>& words) {
  CommonFlags flags;
  Input input;
  std::int64_t gpus = 128;
  CommandLine line("braid trace stats FILE [options]", flags);
  input.add_to(line);
  line.add().add_options()("gpus", po::value(&gpus)->default_value(gpus), "of the cluster that the load is offered to");
  if (!line.parse(words)) return kSuccess;
  if (gpus < 1) throw error("--gpus {} is not usable; give a number >= 1", gpus);
  const Trace trace = traces::read_trace(input.file, input.options);
  const traces::TraceStatistics statistics = traces::statistics_of(trace);
  if (flags.json) {
    fmt::print("{}", to_json(trace, statistics, gpus));
  } else {
    print(trace, statistics, gpus);
  }
  return kSuccess;
}

/// A moment of the trace: its seconds, or a date where it has dates.
double moment_of(const std::string& text, const Trace& trace, const char* flag) {
  const std::string full = text.size() == 10 ? text + " 00:00:00" : text;
  if (const auto date = traces::parse_date(full)) {
    if (trace.zero.empty()) throw error("--{} {}: the trace has no dates; give seconds", flag, text);
    return *date - *traces::parse_date(trace.zero + " 00:00:00");
  }
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(seconds))
    throw error("--{} '{}' is no time; give seconds or a date like 2017-10-09", flag, text);
  return seconds;
}

int run_slice(const std::vector<std::string>& words) {
  CommonFlags flags;
  Input input;
  traces::Slice wanted;
  std::string from, to;
  std::int32_t most_gpus = 0;
  CommandLine line("braid trace slice FILE [options]", flags);
  line.without_json();
  input.add_to(line);
  line.add().add_options()("from", po::value(&from), "first submission: seconds, or a date");
  line.add().add_options()("to", po::value(&to), "submissions before this");
  line.add().add_options()("vc", po::value(&wanted.virtual_cluster), "jobs of this virtual cluster alone");
  line.add().add_options()("most-gpus", po::value(&most_gpus), "no jobs with more GPUs");
  line.add_out("CSV file; left out: stdout");
  if (!line.parse(words)) return kSuccess;
  check_out(flags);
  const Trace trace = traces::read_trace(input.file, input.options);
  if (!from.empty()) wanted.from_seconds = moment_of(from, trace, "from");
  if (!to.empty()) wanted.to_seconds = moment_of(to, trace, "to");
  if (most_gpus != 0) wanted.most_gpus = most_gpus;
  put(traces::slice(trace, wanted), flags);
  return kSuccess;
}

int run_scale(const std::vector<std::string>& words) {
  CommonFlags flags;
  Input input;
  double times = 1, durations = 1, load = 0;
  std::int64_t gpus = 128;
  std::int32_t gpus_of_each = 0;
  CommandLine line("braid trace scale FILE [options]", flags);
  line.without_json();
  input.add_to(line);
  line.add().add_options()("times", po::value(&times), "factor on the times between submissions");
  line.add().add_options()("durations", po::value(&durations), "factor on durations");
  line.add().add_options()("load", po::value(&load), "in place of --times: the load offered afterwards");
  line.add().add_options()("gpus", po::value(&gpus)->default_value(gpus), "that --load is offered to");
  line.add().add_options()("job-gpus", po::value(&gpus_of_each), "GPUs of every job for --load; left out: as recorded");
  line.add_out("CSV file; left out: stdout");
  if (!line.parse(words)) return kSuccess;
  if (gpus < 1 || gpus_of_each < 0) throw error("--gpus and --job-gpus are counts; give numbers >= 1");
  if (load != 0 && times != 1) throw error("--times and --load are both given; --load sets the times");
  check_out(flags);
  const Trace trace = traces::scale(traces::read_trace(input.file, input.options), times, durations);
  put(load == 0 ? trace : traces::scale_to_load(trace, load, gpus, gpus_of_each), flags);
  return kSuccess;
}

int run_resample(const std::vector<std::string>& words) {
  CommonFlags flags;
  Input input;
  std::int64_t jobs = 0;
  double rate = 0;
  CommandLine line("braid trace resample FILE [options]", flags);
  line.without_json();
  input.add_to(line);
  line.add().add_options()("jobs", po::value(&jobs), "to draw, with replacement; left out: as many as there are");
  line.add().add_options()("rate", po::value(&rate), "jobs a minute; left out: as in the trace");
  line.add_seed();
  line.add_out("CSV file; left out: stdout");
  if (!line.parse(words)) return kSuccess;
  check_out(flags);
  if (line.given("jobs") && jobs < 1) throw error("--jobs {} is not usable; give 1 or more", jobs);
  const Trace trace = traces::read_trace(input.file, input.options);
  if (jobs == 0) jobs = static_cast<std::int64_t>(trace.jobs.size());
  put(traces::resample(trace, jobs, rate, static_cast<std::uint64_t>(flags.seed)), flags);
  return kSuccess;
}

int run_generate(const std::vector<std::string>& words) {
  CommonFlags flags;
  traces::Generator wanted;
  std::string shape = "lognormal", gpus = "1";
  double mean = wanted.duration_mean_seconds / 60, deviation = wanted.duration_deviation_seconds / 60;
  double longest = wanted.longest_seconds / 60;
  CommandLine line("braid trace generate [options]", flags);
  line.without_json();
  line.add().add_options()("jobs", po::value(&wanted.jobs)->default_value(wanted.jobs), "how many");
  line.add().add_options()("rate", po::value(&wanted.jobs_per_minute)->default_value(wanted.jobs_per_minute),
                           "jobs a minute");
  line.add().add_options()("burstiness", po::value(&wanted.burstiness)->default_value(wanted.burstiness),
                           "deviation / mean of the times between jobs; 1: Poisson");
  line.add().add_options()("duration", po::value(&shape)->default_value(shape), "lognormal or pareto (bounded)");
  line.add().add_options()("mean", po::value(&mean)->default_value(mean), "duration in minutes");
  line.add().add_options()("deviation", po::value(&deviation)->default_value(deviation), "of it, in minutes");
  line.add().add_options()("longest", po::value(&longest)->default_value(longest), "of a bounded Pareto, in minutes");
  line.add().add_options()("gpus", po::value(&gpus)->default_value(gpus), "of a job, with weights: 1:8,2:1,8:1");
  line.add().add_options()("virtual-clusters", po::value(&wanted.virtual_clusters), "that jobs are spread over");
  line.add_seed();
  line.add_out("CSV file; left out: stdout");
  if (!line.parse(words)) return kSuccess;
  check_out(flags);
  if (shape != "lognormal" && shape != "pareto")
    throw error("--duration {} is not known; give lognormal or pareto", shape);
  if (shape == "lognormal" && line.given("longest"))
    throw error("--longest is where a bounded Pareto ends, and means nothing without --duration pareto");
  if (wanted.virtual_clusters < 0)
    throw error("--virtual-clusters {} is not usable; give 0 or more", wanted.virtual_clusters);
  if (shape == "pareto") wanted.duration = traces::DurationShape::bounded_pareto;
  wanted.duration_mean_seconds = mean * 60;
  wanted.duration_deviation_seconds = deviation * 60;
  wanted.longest_seconds = longest * 60;
  wanted.gpus = parse_weights(gpus, "gpus");
  wanted.seed = static_cast<std::uint64_t>(flags.seed);
  put(traces::generate(wanted), flags);
  return kSuccess;
}

constexpr Command kActions[] = {
    {"stats", "jobs, arrivals, durations, GPUs, offered load", &run_stats},
    {"slice", "the jobs of a time, a virtual cluster, a size", &run_slice},
    {"scale", "other times between jobs, durations, or load", &run_scale},
    {"resample", "jobs drawn anew, with replacement", &run_resample},
    {"generate", "a trace without a trace; the default is MuxTune's week", &run_generate},
    {"formats", "what formats of traces are read", &run_trace_formats},
};

}  // namespace

std::span<const Command> trace_actions() {
  return kActions;
}

int run_trace(const std::vector<std::string>& words) {
  const bool help = words.empty() || words[0] == "--help" || words[0] == "--help-all" || words[0] == "-h";
  std::vector<std::string> names;
  CommandHelp told{"trace", "", "braid trace ACTION [FILE] [options]\n", {}};
  for (const Command& action : kActions) {
    if (!help && words[0] == action.name) return action.run({words.begin() + 1, words.end()});
    told.usage += fmt::format("\n  {:10} {}", action.name, action.summary);
    names.emplace_back(action.name);
  }
  if (!help) throw error("unknown action '{}'; actions: {}", words[0], fmt::join(names, ", "));
  if (HelpCatcher* catcher = HelpCatcher::active()) {
    catcher->caught = std::move(told);
  } else {
    fmt::print("{}", help_text(told, false, 100));
  }
  return words.empty() ? kBadInput : kSuccess;
}

}  // namespace braid::cli
