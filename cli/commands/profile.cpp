#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <thread>

#include <boost/program_options/value_semantic.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/file.h"
#include "base/statistics.h"
#include "cli/command.h"
#include "cli/commands/analytic.h"
#include "cli/commands/crossvalidate.h"
#include "cli/support/backend.h"
#include "cli/support/pilot.h"
#include "cli/support/profiles.h"
#include "cli/support/session.h"
#include "costmodel/profile/derive.h"
#include "costmodel/profile/profile_facts.h"
#include "costmodel/profile/profile_fit.h"

namespace braid::cli {
namespace {

/// The entries of one operator and pass, told in one line.
struct Line {
  std::set<costmodel::OperatorShape> shapes;
  std::vector<double> spreads;
  std::int64_t fewest_tokens = std::numeric_limits<std::int64_t>::max(), most_tokens = 0;
};

/// Spreads above this say that the machine was busy with something else.
constexpr double kNoisySpread = 0.2;

std::string place_of(const costmodel::Departure& departure) {
  const std::string kind = fmt::format("{} {}", name(departure.op), name(departure.pass));
  if (departure.chunk > 0)
    return fmt::format("{}, chunks of {} tokens after {}", kind, departure.chunk, departure.work);
  return fmt::format("{}, {} tokens", kind, departure.work);
}

/// As many numbers as the operator's shape has.
std::string shape_of(costmodel::Operator op, const costmodel::OperatorShape& shape) {
  const std::size_t size = costmodel::shape_size(op).most;
  return fmt::format("{}", fmt::join(std::span(shape).first(size), "x"));
}

void print_summary(const costmodel::Profile& profile, const std::string& file) {
  fmt::print("{}: {} ranks of {} threads, {:.1f} GFLOP/s a rank at best (large matrix product)\n", profile.machine,
             profile.corunning_ranks, profile.threads, profile.peak_flops / 1e9);
  std::map<std::pair<costmodel::Operator, costmodel::Pass>, Line> lines;
  std::vector<double> spreads;
  for (const costmodel::ProfileEntry& entry : profile.entries) {
    Line& line = lines[{entry.op, entry.pass}];
    line.shapes.insert(entry.shape);
    line.spreads.push_back(entry.spread);
    line.fewest_tokens = std::min(line.fewest_tokens, entry.tokens);
    line.most_tokens = std::max(line.most_tokens, entry.tokens);
    spreads.push_back(entry.spread);
  }
  fmt::print("{:14} {:10} {:>7} {:>7} {:>22} {:>14}\n", "operator", "pass", "shapes", "points", "tokens or bytes",
             "median spread");
  for (const auto& [key, line] : lines) {
    fmt::print("{:14} {:10} {:>7} {:>7} {:>22} {:>12.1f} %\n", name(key.first), name(key.second), line.shapes.size(),
               line.spreads.size(), fmt::format("{}..{}", line.fewest_tokens, line.most_tokens),
               100 * median(line.spreads));
  }
  for (const costmodel::KernelChoice& choice : profile.kernels) {
    const bool attends = choice.op == costmodel::Operator::attention;
    const std::string shape =
        choice.shape == costmodel::OperatorShape{} ? "of any shape" : shape_of(choice.op, choice.shape);
    if (choice.op == costmodel::Operator::launch) {
      fmt::print("layers {}: launched as CUDA graphs{}\n", name(choice.pass),
                 choice.to == costmodel::KernelChoice().to
                     ? std::string()
                     : fmt::format(" where microbatches have {} tokens or fewer", choice.to));
      continue;
    }
    fmt::print("{} {} {}: {} from {} tokens{} on\n", name(choice.op), name(choice.pass), shape,
               attends ? "by cuDNN" : "LoRA within the product", choice.from, attends ? " a sequence" : "");
  }
  fmt::print("{} entries, written to {}\n", profile.entries.size(), file);
  const costmodel::Departure furthest = costmodel::CostModel(profile).largest_departure();
  if (furthest.share != 0)
    fmt::print("curves that never fall depart from the points by {:+.1f} % at most ({})\n", 100 * furthest.share,
               place_of(furthest));
  if (!spreads.empty() && median(spreads) > kNoisySpread)
    fmt::print("half of the entries spread over {:.0f} %: the machine was busy; measure again when it is quiet\n",
               100 * median(spreads));
}

/// What the table does that the fitted curves may not.
void print_facts(const std::string& file, const costmodel::Profile& profile) {
  const costmodel::ProfileFacts facts = costmodel::facts_of(profile);
  fmt::print("{}: of {} neighbouring points {} fall, by {:.1f} % at most", file, facts.neighbours, facts.falls,
             100 * facts.largest_fall);
  if (facts.shards > 0) fmt::print("; of {} shards of products {} are superlinear", facts.shards, facts.superlinear);
  if (facts.moves > 0) fmt::print("; of {} moves {} beat the memory", facts.moves, facts.beats_memory);
  const costmodel::Departure& furthest = facts.largest_departure;
  if (furthest.share != 0)
    fmt::print("; the curves of plans depart by {:+.1f} % at most ({}, shape {})", 100 * furthest.share,
               place_of(furthest), shape_of(furthest.op, furthest.shape));
  fmt::print("\n");
}

/// Prints, operator by operator, how the second profile's answers compare with the first's entries.
void check(const std::vector<std::string>& files) {
  if (files.size() != 2) throw error("--check takes two profiles, not {}; give --check A.json B.json", files.size());
  std::int64_t unanswered = 0;
  const costmodel::Profile first = costmodel::read_profile(files[0]), second = costmodel::read_profile(files[1]);
  const std::vector<costmodel::Disagreement> all = costmodel::compare_profiles(first, second, unanswered);
  if (all.empty()) throw error("{}: answers none of the {} entries of {}", files[1], unanswered, files[0]);
  std::map<std::pair<costmodel::Operator, costmodel::Pass>, std::vector<double>> ratios;
  for (const costmodel::Disagreement& one : all) ratios[{one.entry.op, one.entry.pass}].push_back(one.ratio());
  fmt::print("{} over {}\n{:14} {:10} {:>7} {:>8} {:>8} {:>8}\n", files[1], files[0], "operator", "pass", "points",
             "least", "median", "most");
  for (const auto& [key, list] : ratios) {
    fmt::print("{:14} {:10} {:>7} {:>8.2f} {:>8.2f} {:>8.2f}\n", name(key.first), name(key.second), list.size(),
               quantile(list, 0), median(list), quantile(list, 1));
  }
  std::vector<costmodel::Disagreement> worst = all;
  const auto distance = [](const costmodel::Disagreement& one) {
    return std::abs(std::log(std::max(one.ratio(), 1e-9)));
  };
  std::sort(worst.begin(), worst.end(), [&](const auto& a, const auto& b) { return distance(a) > distance(b); });
  constexpr std::size_t kShown = 5;
  fmt::print("furthest apart\n");
  for (std::size_t i = 0; i < std::min(kShown, worst.size()); ++i) {
    const costmodel::ProfileEntry& entry = worst[i].entry;
    fmt::print("  {} {} of {} tokens, shape {}: {:.1f} us, {:.1f} us\n", name(entry.op), name(entry.pass), entry.tokens,
               shape_of(entry.op, entry.shape), entry.seconds * 1e6, worst[i].other_seconds * 1e6);
  }
  if (unanswered > 0) fmt::print("{} entries of {} have no answer in {}\n", unanswered, files[0], files[1]);
  print_facts(files[0], first);
  print_facts(files[1], second);
}

/// What is added to must have been measured here, and alike.
void check_known(const std::string& file, const CommonFlags& flags, int threads, std::int64_t ranks) {
  const costmodel::Profile known = costmodel::read_profile(file);
  if (!known.device.empty())
    throw error("{}: is of {}, by its datasheet; give a measured profile to add to", file, known.device);
  if (known.backend != backend_of(flags))
    throw error("{}: was measured with --backend {}, and here that is {}", file, known.backend, backend_of(flags));
  check_machine(known, file, flags);
  if (known.threads != threads || known.corunning_ranks != ranks)
    throw error(
        "{}: was measured on {} ranks of {} threads, and here are {} of {}; give --ranks and --threads as there", file,
        known.corunning_ranks, known.threads, ranks, threads);
}

/// Writes a GPU's measured profile anew with what its entries say of the GPU, and how well that holds.
void fit(const std::string& file, const CommonFlags& flags) {
  if (flags.out.empty()) throw error("--out is missing; give a file for the fitted profile");
  if (std::filesystem::exists(flags.out) && !flags.overwrite)
    throw error("{}: exists; give another file or --overwrite", flags.out);
  const costmodel::ProfileFit fitted = costmodel::fit_profile(costmodel::read_profile(file));
  write_file(flags.out, costmodel::to_json(fitted.profile));
  fmt::print("{}: |predicted / measured - 1|\n", fitted.profile.machine);
  fmt::print("{}", error_table_heading());
  const auto print = [](const char* what, const std::vector<double>& errors) {
    if (!errors.empty()) fmt::print("{}", error_table_line(what, errors));
  };
  print("products, with its generation's coefficients", fitted.generation);
  print("products, fitted on all", fitted.fitted);
  print("products, half of the shapes by the others", fitted.held_out);
  print("copies, fitted on all", fitted.copies);
  if (fitted.held_out.empty())
    fmt::print("half of the products tell too little of the others to be held against them\n");
  if (!fitted.profile.copies) fmt::print("copies are of too few sizes: these stay as in the GPU's generation\n");
  fmt::print("written to {}\n", flags.out);
}

}  // namespace

int run_profile(const std::vector<std::string>& words) {
  CommonFlags flags;
  CommandLine line("braid profile --workload FILE [options]", flags);
  line.add().add_options()("workload", boost::program_options::value(&flags.workload),
                           "whose backbone and adapters to measure");
  line.add().add_options()("ranks", boost::program_options::value(&flags.ranks),
                           "ranks at work at once; left out: one a core, or a GPU");
  line.add().add_options()("policy", boost::program_options::value(&flags.policy)->default_value("megatron-pp,muxtune"),
                           "what will be planned: measured is what these plans use");
  line.add().add_options()("cluster", boost::program_options::value(&flags.cluster),
                           "cluster.yaml that plans will be for");
  line.add().add_options()("pp", boost::program_options::value(&flags.pp), "pipeline stages of the plans");
  line.add().add_options()("tp", boost::program_options::value(&flags.tp), "tensor-parallel degree of the plans");
  line.add().add_options()("layers", boost::program_options::value(&flags.layers)->default_value("even"),
                           "of each stage of the plans");
  line.add().add_options()("microbatches", boost::program_options::value(&flags.microbatches),
                           "of each global batch of the plans");
  line.add_preference();
  line.add_profile_budget();
  line.add_backend();
  line.add().add_options()(
      "kernels", boost::program_options::value(&flags.kernels)->default_value(flags.kernels),
      "what a GPU of --backend cuda computes with, now and in runs of plans by this profile: faster, of each kernel "
      "that it has two of the one that is measured to be; plain, the first ones; or with --out the second ones, joined "
      "(LoRA within frozen products, H100 and H200), cudnn (attention going forward), graphs (all that a layer "
      "launches "
      "at once), or some of joined,cudnn,graphs");
  std::string known;
  line.add().add_options()("known", boost::program_options::value(&known),
                           "a profile of this machine and backbone with as many ranks and threads, to add to; left "
                           "out: --out starts from nothing, and where plans look that is added to");
  AnalyticFlags analytic;
  add_analytic(line, analytic);
  std::string held_out;
  std::vector<std::string> checked;
  line.add().add_options()("check", boost::program_options::value(&checked)->multitoken(),
                           "two profiles: print where they disagree");
  line.add().add_options()("crossvalidate", boost::program_options::value(&held_out),
                           "a measured profile: predict each of its points from the others, and print the errors");
  std::string measured;
  line.add().add_options()(
      "fit", boost::program_options::value(&measured),
      "a GPU's measured profile, such as --backend cuda writes: learn from its products and copies what "
      "plans take for all others, and write it with that to --out");
  line.add().add_options()("plan", boost::program_options::value(&flags.plan),
                           "a plan for this machine: run a few microbatches of it, and write its profile to --out, "
                           "moved where the prediction does not hold");
  line.add_foreign_profile();
  line.add_out("profile file; left out: where plans look for it, added to unless --overwrite is given");
  line.add_threads();
  line.later({"dtype", "exposed-launch-seconds", "overlap-slowdown", "clock", "attention", "loss-in-place", "known",
              "pp", "tp", "layers", "microbatches", "prefer", "kernels"});
  if (!line.parse(words)) return kSuccess;
  check(analytic);
  const auto kernels = kernels_of(flags.kernels);
  const bool measures =
      analytic.gpu.empty() && measured.empty() && checked.empty() && held_out.empty() && flags.plan.empty();
  if ((analytic.gpu.empty() ? 0 : 1) + (measured.empty() ? 0 : 1) + (checked.empty() ? 0 : 1) +
          (held_out.empty() ? 0 : 1) + (flags.plan.empty() ? 0 : 1) >
      1)
    throw error(
        "--analytic, --fit, --check, --crossvalidate and --plan each do a thing of their own; give one of them");
  if (flags.json && !measures)
    throw error("--json is of what is measured of a workload; leave it out, as this command prints a text");
  if (line.given("kernels") && !measures)
    throw error("--kernels is of what is measured of a workload; leave it out, or --{}",
                !analytic.gpu.empty() ? "analytic"
                : !measured.empty()   ? "fit"
                : !checked.empty()    ? "check"
                : !held_out.empty()   ? "crossvalidate"
                                      : "plan");
  for (const char* name :
       {"dtype", "exposed-launch-seconds", "overlap-slowdown", "clock", "attention", "loss-in-place"}) {
    if (analytic.gpu.empty() && line.given(name))
      throw error("--{} is of derived profiles; give --analytic GPU beside it", name);
  }
  if (!checked.empty()) {
    check(checked);
    return kSuccess;
  }
  if (!analytic.gpu.empty()) {
    derive(analytic, flags);
    return kSuccess;
  }
  if (!measured.empty()) {
    fit(measured, flags);
    return kSuccess;
  }
  if (!held_out.empty()) {
    crossvalidate(held_out);
    return kSuccess;
  }
  if (!flags.plan.empty()) {
    if (!flags.out.empty() && std::filesystem::exists(flags.out) && !flags.overwrite)
      throw error("{}: exists; give another file or --overwrite", flags.out);
    return run_pilot_of_plan(flags);
  }
  if (flags.workload.empty()) throw error("--workload is missing; give a workload file, such as `braid init` writes");
  if (kernels && backend_of(flags) != "cuda")
    throw error("--kernels {} is of --backend cuda; {} has one kernel an operator", flags.kernels, backend_of(flags));
  if (kernels && (flags.out.empty() || !known.empty()))
    throw error("--kernels {} asks for a profile of its own; give --out FILE{}", flags.kernels,
                known.empty() ? "" : ", and leave --known out: its kernels stay");
  const workload::Workload workload = workload::read_workload(flags.workload);
  check_measurable(workload);
  const workload::Cluster cluster = read_cluster_flags(flags);
  const std::vector<planner::PolicyChoice> choices = planner::parse_policies(flags.policy);
  const int launched = exec::launched_ranks();
  const std::int64_t here = ranks_at_work(flags, cluster, workload.backbone, choices);
  const std::int64_t ranks = launched > 0 ? launched : flags.ranks > 0 ? flags.ranks : here;
  const int threads = threads_of_rank(flags, ranks);
  const std::filesystem::path file = flags.out.empty() ? cached_profile(workload, backend_of(flags), threads, ranks)
                                                       : std::filesystem::path(flags.out);
  if (!flags.out.empty() && std::filesystem::exists(file) && !flags.overwrite)
    throw error("{}: exists; give another file or --overwrite", file.string());
  if (!known.empty() && launched == 0) check_known(known, flags, threads, ranks);
  if (flags.out.empty() && known.empty() && !flags.overwrite && std::filesystem::exists(file)) known = file.string();
  if (launched == 0) check_writable(file);
  const Data data = load_data(workload, false);
  measure_into(file, known, flags, {workload, cluster, data, choices}, threads, ranks);
  if (launched > 0) return kSuccess;  // the rank that launched them tells
  const costmodel::Profile profile = costmodel::read_profile(file);
  if (flags.json) {
    fmt::print("{}", costmodel::to_json(profile));
  } else {
    print_summary(profile, file.string());
  }
  return kSuccess;
}

}  // namespace braid::cli
