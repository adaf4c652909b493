#include <fmt/core.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/profiles.h"
#include "cli/session.h"

namespace braid::cli {
namespace {

void print_summary(const costmodel::Profile& profile, const std::string& file) {
  fmt::print("{}: {} ranks of {} threads, {:.1f} GFLOP/s a rank at best (f32 matrix product)\n", profile.machine, profile.corunning_ranks, profile.threads, profile.peak_flops / 1e9);
  fmt::print("{:14} {:10} {:>20} {:>8} {:>8} {:>12} {:>8}\n", "operator", "pass", "shape", "tokens", "context", "median", "spread");
  for (const costmodel::ProfileEntry& entry : profile.entries) {
    std::string shape;
    for (const std::int64_t number : entry.shape) {
      if (number != 0) shape += fmt::format("{}{}", shape.empty() ? "" : "x", number);
    }
    fmt::print("{:14} {:10} {:>20} {:>8} {:>8} {:>9.1f} us {:>6.1f} %\n", name(entry.op), name(entry.pass), shape, entry.tokens, entry.context, entry.seconds * 1e6, entry.spread * 100);
  }
  fmt::print("{} entries, written to {}\n", profile.entries.size(), file);
}

}  // namespace

int run_profile(const std::vector<std::string>& words) {
  CommonFlags flags;
  CommandLine line("braid profile --workload FILE [options]", flags);
  line.add().add_options()("workload", boost::program_options::value(&flags.workload), "whose backbone and adapters to measure");
  line.add().add_options()("ranks", boost::program_options::value(&flags.ranks), "ranks at work at once; left out: one a core");
  line.add_out("profile file; left out: where plans look for it");
  line.add_threads();
  if (!line.parse(words)) return kSuccess;
  if (flags.workload.empty()) throw error("--workload is missing; give a workload file, such as `braid init` writes");
  const workload::Workload workload = workload::read_workload(flags.workload);
  if (workload.backbone_folder.empty()) throw error("backbone '{}' is a shape without weights; give a workload with a backbone folder", workload.backbone_reference);
  const int launched = exec::launched_ranks();
  const std::int64_t here = std::min<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()), workload.backbone.layers);
  const std::int64_t ranks = launched > 0 ? launched : flags.ranks > 0 ? flags.ranks : here;
  const int threads = threads_of_rank(flags, ranks);
  const std::filesystem::path file = flags.out.empty() ? cached_profile(workload, threads, ranks) : std::filesystem::path(flags.out);
  if (!flags.out.empty() && std::filesystem::exists(file) && !flags.overwrite) throw error("{}: exists; give another file or --overwrite", file.string());
  measure_into(file, flags, flags.workload, threads, ranks);
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
