#include <fmt/core.h>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/commands/train_run.h"
#include "cli/support/backend.h"
#include "cli/support/launch.h"

namespace braid::cli {
namespace {

/// Without a plan or workload the run's own plan is gone on with.
void prepare_to_resume(CommonFlags& flags) {
  const std::filesystem::path plan = std::filesystem::path(flags.out) / "plan.json";
  if (!std::filesystem::exists(plan))
    throw error("{}: holds no run to resume, as there is no plan.json; give the folder of a run, or leave out --resume",
                flags.out);
  if (flags.overwrite) throw error("--overwrite gives up the run that --resume goes on with; leave one out");
  if (flags.plan.empty() && flags.workload.empty()) flags.plan = plan.string();
}

}  // namespace

int run_train(const std::vector<std::string>& words) {
  CommonFlags flags;
  TrainFlags own;
  CommandLine line("braid train (--plan FILE | --workload FILE | --resume) --out DIR [options]", flags);
  line.add_plan();
  line.add_planning("braid");
  line.add_out("folder for adapters/, metrics.jsonl, timeline.json, plan.json and checkpoints/");
  namespace po = boost::program_options;
  line.add().add_options()(
      "resume", po::bool_switch(&own.resume),
      "go on with the run in --out from its last checkpoint: by its plan, or another that is given");
  line.add().add_options()("checkpoint-minutes", po::value(&own.checkpoint_minutes)->default_value(10),
                           "keep the run's state so often, and at its end; 0: at its end alone");
  line.add().add_options()("checkpoint-steps", po::value(&own.checkpoint_steps),
                           "keep it as well whenever a task has taken so many steps");
  line.add().add_options()("checkpoints-kept", po::value(&own.checkpoints_kept)->default_value(own.checkpoints_kept),
                           "how many of the newest stay");
  line.add().add_options()("stay", po::bool_switch(&own.stay),
                           "when all tasks have ended, wait for more in the run's inbox/");
  line.add_threads();
  line.add_timeline();
  line.later({"checkpoint-steps", "checkpoints-kept", "timeline-out", "cluster", "prefer", "tp", "pp"});
  if (!line.parse(words)) return kSuccess;
  if (flags.out.empty()) throw error("--out is missing; give a folder for the adapters and metrics");
  if (!(own.checkpoint_minutes >= 0 && own.checkpoint_minutes < 1e6) || own.checkpoint_steps < 0)
    throw error("--checkpoint-minutes and --checkpoint-steps are 0 or more");
  if (own.checkpoints_kept < 1)
    throw error("--checkpoints-kept {} is not usable; give 1 or more", own.checkpoints_kept);
  if (own.resume) {
    if (flags.workload.empty() && flags.plan.empty()) {
      if (const std::optional<std::string> name = line.given_of_planning())
        throw error(
            "--resume goes on by the run's own plan, which --{} does not change; give --workload FILE to plan anew, or "
            "another --plan",
            *name);
    }
    prepare_to_resume(flags);
  } else if (exec::launched_ranks() == 0) {
    check_output_folder(flags.out, flags.overwrite);
  }
  if (exec::launched_ranks() == 0) check_writable(std::filesystem::path(flags.out) / "plan.json");
  if (!flags.backend.empty()) make_device(flags.backend);
  const planner::Plan plan = plan_from_flags(flags);
  if (flags.overwrite && exec::launched_ranks() == 0) check_given_up(flags.out, plan, flags);
  if (!must_launch(plan, backend_of(flags, plan))) return TrainRun(plan, flags, own).run();
  flags.passed_on = {"--checkpoint-minutes", fmt::format("{}", own.checkpoint_minutes),
                     "--checkpoint-steps",   std::to_string(own.checkpoint_steps),
                     "--checkpoints-kept",   std::to_string(own.checkpoints_kept)};
  if (own.resume) flags.passed_on.emplace_back("--resume");
  if (own.stay) flags.passed_on.emplace_back("--stay");
  return launch_with_plan("train", plan, flags);
}

}  // namespace braid::cli
