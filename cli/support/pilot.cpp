#include "cli/support/pilot.h"

#include <cmath>

#include <fmt/core.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "cli/command.h"
#include "cli/support/backend.h"
#include "cli/support/launch.h"
#include "cli/support/profiles.h"
#include "cli/support/results.h"
#include "cli/support/run_ranks.h"
#include "exec/profiling/pilot.h"
#include "planner/plan/plan_hashes.h"

namespace braid::cli {
namespace {

/// A prediction this close holds: runs of one plan differ by as much.
constexpr double kHolds = 0.015;

void tell(const exec::Pilot& pilot, const CommonFlags& flags) {
  if (flags.quiet) return;
  if (pilot.runs == 0) {
    fmt::print(stderr, "pilot: no microbatch of the plan fits what is left of --profile-budget; none was run\n");
    return;
  }
  const double error = pilot.measured_seconds / pilot.predicted_seconds - 1;
  fmt::print(stderr, "pilot: {} microbatches of {} windows took {} in the median of {}, predicted {}: {}\n",
             pilot.microbatches, pilot.windows, duration(pilot.measured_seconds), pilot.runs,
             duration(pilot.predicted_seconds),
             std::abs(error) <= kHolds ? "the prediction holds"
                                       : fmt::format("the profile is moved by {:+.1f} %", 100 * error));
}

/// On the plan's ranks, of which rank 0 has the answer.
costmodel::Profile pilot_here(const planner::Plan& plan, const Data& data, const CommonFlags& flags, double seconds,
                              exec::Communicator& communicator) {
  set_thread_count(threads_of_rank(flags, plan.ranks()));
  const std::unique_ptr<kernels::Device> device = make_device(flags, plan);
  const exec::Pilot pilot =
      exec::run_pilot(plan, data.samples, data.datasets, judge_by_replay(), seconds, communicator, *device);
  costmodel::Profile profile = plan.profile;
  if (communicator.rank() != 0) return profile;
  tell(pilot, flags);
  const double ratio = pilot.runs > 0 ? pilot.measured_seconds / pilot.predicted_seconds : 1;
  if (std::abs(ratio - 1) > kHolds) profile.pass_skew *= ratio;
  return profile;
}

}  // namespace

costmodel::Profile piloted_profile(const planner::Plan& plan, const Data& data, const CommonFlags& flags,
                                   double seconds) {
  if (!must_launch(plan, plan.profile.backend)) {
    const auto communicator = communicator_for(plan);
    return pilot_here(plan, data, flags, seconds, *communicator);
  }
  const std::filesystem::path moved =
      std::filesystem::temp_directory_path() / fmt::format("braid-pilot-{}.json", ::getpid());
  CommonFlags launched = flags;
  launched.out = moved.string();
  launched.timeline_out.clear();
  launched.json = false;
  launched.passed_on = {"--overwrite", "--profile-budget", fmt::format("{}", seconds)};
  if (const int status = launch_with_plan("profile", plan, launched); status != 0) {
    std::filesystem::remove(moved);
    throw RanksEnded{status};
  }
  costmodel::Profile profile = costmodel::read_profile(moved);
  std::filesystem::remove(moved);
  return profile;
}

int run_pilot_of_plan(CommonFlags flags) {
  if (flags.out.empty()) throw error("--out is missing; give a file for the plan's profile as the pilot leaves it");
  const planner::Plan plan = planner::read_plan(flags.plan);
  planner::check_data_hashes(plan);
  if (exec::launched_ranks() == 0) check_machine(plan.profile, flags.plan, flags);
  const Data data = load_data(plan.workload, true);
  if (must_launch(plan, plan.profile.backend)) {
    write_file(flags.out, costmodel::to_json(piloted_profile(plan, data, flags, flags.profile_budget)));
    return kSuccess;
  }
  const auto communicator = communicator_for(plan);
  const costmodel::Profile profile = pilot_here(plan, data, flags, flags.profile_budget, *communicator);
  if (communicator->rank() == 0) write_file(flags.out, costmodel::to_json(profile));
  return kSuccess;
}

}  // namespace braid::cli
