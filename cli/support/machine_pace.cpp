#include "cli/support/machine_pace.h"

#include <filesystem>
#include <string>

#include <fmt/core.h>

#include "cli/support/profiles.h"
#include "exec/profiling/reference_pass.h"

namespace braid::cli {
namespace {

/// Passes of the reference, of which the median counts.
constexpr double kPasses = 100;

/// Where profile_for keeps that profile, or one that has grown out of it; empty where it keeps none.
std::filesystem::path kept_profile(const planner::Plan& plan) {
  const costmodel::Profile& profile = plan.profile;
  std::filesystem::path file = cached_profile(plan.workload, profile.backend, profile.threads, profile.corunning_ranks);
  if (!std::filesystem::exists(file)) return {};
  const bool same = costmodel::read_profile(file).reference_pass_seconds == profile.reference_pass_seconds;
  return same ? file : std::filesystem::path();
}

}  // namespace

void explain_by_pace(const planner::Plan& plan, bool quiet, exec::Communicator& communicator, kernels::Device& device) {
  const double then = plan.profile.reference_pass_seconds;
  if (then <= 0) return;
  exec::ReferencePass reference(plan.workload.backbone, device);
  const double now = reference.seconds_beside(kPasses * then, communicator);
  if (communicator.rank() != 0) return;
  const double pace = now / then;
  const std::filesystem::path kept = kept_profile(plan);
  const bool forgets = pace < 1 && !exec::usual_pace(pace) && !kept.empty();
  if (forgets) std::filesystem::remove(kept);
  if (quiet) return;
  if (exec::usual_pace(pace)) {
    fmt::print(
        stderr,
        "the machine has kept the pace at which the profile was measured; `braid validate` shows where steps and "
        "predictions part\n");
    return;
  }
  const std::string remedy =
      forgets        ? "the next plan measures it anew"
      : kept.empty() ? "measure it anew with `braid profile`"
                     : "where that is to stay, measure it anew with `braid profile --workload FILE --overwrite`";
  fmt::print(stderr, "the machine is {:.2f} times as {} as when the plan's profile was measured{}; {}\n",
             pace < 1 ? 1 / pace : pace, pace < 1 ? "fast" : "slow", pace < 1 ? "" : ", as it is while others use it",
             remedy);
}

}  // namespace braid::cli
