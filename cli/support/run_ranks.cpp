#include "cli/support/run_ranks.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/support/backend.h"
#include "cli/support/launch.h"
#include "exec/executable.h"

namespace braid::cli {
namespace {

std::atomic<bool> interrupted = false, told_to_terminate = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int signal) {
  if (signal == SIGTERM || signal == SIGUSR2) told_to_terminate = true;
  if (interrupted.exchange(true) && signal == SIGINT) std::_Exit(kInterrupted);
}

}  // namespace

std::unique_ptr<exec::Communicator> communicator_for(const planner::Plan& plan) {
  const int launched = std::max(1, exec::launched_ranks());
  if (launched != plan.ranks())
    throw error("the plan needs {} ranks and {} are running; start it with mpirun -n {}, or without mpirun",
                plan.ranks(), launched, plan.ranks());
  return launched > 1 ? exec::make_mpi_communicator() : exec::make_local_communicator();
}

void check_ranks_are_alike(const planner::Plan& plan, exec::Communicator& communicator) {
  if (communicator.size() == 1) return;
  const std::string program = hash_file("/proc/self/exe"), of_plan = hash_bytes(planner::to_json(plan));
  const std::vector<std::string> all = communicator.gather(program + " " + of_plan);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    const bool same_program = all[rank].starts_with(program + " ");
    throw error("rank {} was started with another {} than rank 0; start all ranks with one", rank,
                same_program ? "plan" : "build of braid");
  }
}

namespace {

/// A rank has a GPU of its own.
void check_gpus(const planner::Plan& plan, const std::string& backend) {
  if (plan.fixed.shards_weights && plan.cluster.nodes > 1)
    throw error(
        "the plan keeps weights in shares over {} nodes, whose GPUs do not read each other's memory; plan for one "
        "node, "
        "or with another policy",
        plan.cluster.nodes);
  const std::int64_t here = ranks_here(backend);
  const std::int64_t of_node = std::min<std::int64_t>(plan.ranks(), plan.cluster.gpus_per_node);
  if (here < of_node) throw error("the plan needs {} GPUs, and here are {}; plan with --ranks {}", of_node, here, here);
}

}  // namespace

std::vector<Bytes> gather_bytes(Bytes mine, exec::Communicator& communicator) {
  std::vector<Bytes> all;
  for (const std::string& part : communicator.gather(std::to_string(mine))) all.push_back(std::stoll(part));
  return all;
}

bool must_launch(const planner::Plan& plan, const std::string& backend) {
  if (!plan.cluster.own() && plan.cluster.profile.empty())
    throw error(
        "the plan is for gpu '{}' by its datasheet, which is simulated only; plan for gpu: cpu or cuda, whose ranks "
        "braid "
        "measures",
        plan.cluster.gpu);
  exec::check_executable(plan.fixed);
  exec::check_targets(plan.workload);
  if (!plan.profile.device.empty())
    throw error(
        "the plan's profile is that of {}, which this build cannot execute; plan with a profile of this machine",
        plan.profile.device);
  if (is_gpu(backend)) check_gpus(plan, backend);
  if (plan.cluster.nodes > 1 && exec::launched_ranks() == 0)
    throw error("the plan is for {} nodes; start it on them with mpirun -n {}", plan.cluster.nodes, plan.ranks());
  return plan.ranks() > 1 && exec::launched_ranks() == 0;
}

int launch_with_plan(const std::string& command, const planner::Plan& plan, const CommonFlags& flags) {
  const std::filesystem::path copy =
      std::filesystem::temp_directory_path() / fmt::format("braid-plan-{}.json", ::getpid());
  write_file(copy, planner::to_json(plan));
  std::vector<std::string> words = {command, "--plan", copy.string()};
  const auto pass_on = [&](const char* flag, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {flag, value});
  };
  pass_on("--out", flags.out);
  pass_on("--timeline-out", flags.timeline_out);
  if (flags.threads > 0) pass_on("--threads", std::to_string(flags.threads));
  if (flags.json) words.emplace_back("--json");
  if (flags.quiet) words.emplace_back("--quiet");
  pass_on("--backend", flags.backend);
  words.insert(words.end(), flags.passed_on.begin(), flags.passed_on.end());
  int status = kFailure;
  try {
    status = launch_ranks(plan.ranks(), words);
  } catch (...) {
    std::filesystem::remove(copy);
    throw;
  }
  std::filesystem::remove(copy);
  return status;
}

InterruptGuard::InterruptGuard() {
  interrupted = told_to_terminate = false;
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) std::signal(signal, &on_signal);
}

InterruptGuard::~InterruptGuard() {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) std::signal(signal, SIG_DFL);
  end_when_told();
}

const std::atomic<bool>& InterruptGuard::asked() const {
  return interrupted;
}

bool InterruptGuard::terminated() const {
  return told_to_terminate;
}

}  // namespace braid::cli
