#include "cli/support/profiles.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <thread>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "cli/support/backend.h"
#include "cli/support/launch.h"
#include "cli/support/pilot.h"
#include "cli/support/progress.h"
#include "costmodel/gpu/device.h"
#include "costmodel/profile/profile.h"
#include "exec/executable.h"
#include "exec/profiling/measure.h"
#include "exec/profiling/plan_director.h"

namespace braid::cli {
namespace {

/// Of --profile-budget, what is left for the pilot of the one plan that is wanted.
constexpr double kPilotShare = 0.2;

std::filesystem::path cache_folder() {
  if (const char* folder = std::getenv("XDG_CACHE_HOME"); folder && *folder)
    return std::filesystem::path(folder) / "braid";
  if (const char* home = std::getenv("HOME"); home && *home) return std::filesystem::path(home) / ".cache" / "braid";
  return std::filesystem::temp_directory_path() / "braid-cache";
}

/// A cluster that names its GPUs is planned for with a profile of theirs.
void check_device(const costmodel::Profile& profile, const std::string& file, const workload::Cluster& cluster) {
  if (!cluster.profile.empty()) return;
  const auto of = [](std::string_view device) {
    return device.empty() || device == "cpu" ? std::string("CPUs") : fmt::format("GPUs of kind '{}'", device);
  };
  const costmodel::Device* device = costmodel::find_device(cluster.gpu);
  const std::string_view wanted = device ? device->name : "";
  if (profile.device != wanted)
    throw error("{}: is of {}, and the cluster's are {}; give a profile of those, or a cluster of gpu: {}", file,
                of(profile.device), of(device ? device->name : cluster.gpu),
                profile.device.empty() ? "cpu" : profile.device);
}

/// Tells what measuring for one workload, policies and budget from another: lengths, adapters, batches.
std::string measuring_key(const CommonFlags& flags, const PlannedWork& planned) {
  std::string key = fmt::format("1 {} {} {} {} {} {}", flags.profile_budget, flags.tp, flags.pp, flags.microbatches,
                                flags.layers, planned.cluster.gpus());
  if (flags.preference() != planner::Preference::speed) key += fmt::format(" {}", flags.prefer);
  for (const planner::PolicyChoice& choice : planned.choices) key += " " + planner::spelled(choice);
  for (std::size_t i = 0; i < planned.workload.tasks.size(); ++i) {
    const workload::Task& task = planned.workload.tasks[i];
    key += fmt::format(" {} {} {} {} {} {} {} {} {}", name(task.adapter.method), task.adapter.scales_inputs,
                       task.adapter.rank, fmt::join(task.adapter.module_ranks, "."), task.adapter.dropout > 0,
                       fmt::join(task.adapter.targets, ""), task.global_batch_size, task.max_length, task.seed);
    for (const workload::SampleSize& size : planned.data.samples.sizes(static_cast<int>(i)))
      key += fmt::format(" {} {} {}", size.tokens, size.supervised, size.chosen);
  }
  return hash_bytes(key);
}

/// The words that start this program again to measure the same.
std::vector<std::string> measuring_words(const std::filesystem::path& file, const std::filesystem::path& known,
                                         const CommonFlags& flags, const PlannedWork& planned, int threads) {
  std::vector<std::string> words = {"profile",
                                    "--workload",
                                    planned.workload.file.string(),
                                    "--out",
                                    file.string(),
                                    "--overwrite",
                                    "--threads",
                                    std::to_string(threads),
                                    "--profile-budget",
                                    fmt::format("{}", flags.profile_budget)};
  const auto pass_on = [&](const char* flag, const std::string& value) {
    if (!value.empty() && value != "0") words.insert(words.end(), {flag, value});
  };
  pass_on("--known", known.string());
  pass_on("--cluster", flags.cluster);
  pass_on("--tp", std::to_string(flags.tp));
  pass_on("--pp", std::to_string(flags.pp));
  pass_on("--microbatches", std::to_string(flags.microbatches));
  pass_on("--layers", flags.layers);
  pass_on("--ranks", std::to_string(flags.ranks));
  pass_on("--prefer", flags.prefer);
  pass_on("--backend", flags.backend);
  pass_on("--kernels", flags.kernels);
  std::vector<std::string> policies;
  for (const planner::PolicyChoice& choice : planned.choices) policies.push_back(planner::spelled(choice));
  pass_on("--policy", fmt::format("{}", fmt::join(policies, ",")));
  if (flags.quiet) words.emplace_back("--quiet");
  return words;
}

/// What times depend on here.
struct Machine {
  std::string name;
  std::vector<std::string> versions;
};

Machine machine_here(const std::string& backend) {
  const std::unique_ptr<kernels::Device> device = make_device(backend);
  return {device->machine(), exec::machine_versions(*device)};
}

}  // namespace

void check_measurable(const workload::Workload& workload) {
  if (workload.backbone_folder.empty())
    throw error("backbone '{}' has no weights here to measure with; give --profile FILE", workload.backbone_reference);
  exec::check_targets(workload);
}

void check_machine(const costmodel::Profile& profile, const std::string& file, const CommonFlags& flags) {
  if (flags.foreign_profile || !profile.device.empty()) return;
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const auto refuse = [&](const std::string& theirs, const std::string& ours) {
    throw error(
        "{}: was measured {}, and here is {}; measure this machine by leaving --profile out, or give "
        "--foreign-profile to plan with it all the same",
        file, theirs, ours);
  };
  const Machine here = machine_here(profile.backend);
  if (profile.machine != here.name) refuse(fmt::format("on '{}'", profile.machine), fmt::format("'{}'", here.name));
  if (profile.versions != here.versions)
    refuse(fmt::format("with {}", fmt::join(profile.versions, ", ")),
           fmt::format("{}", fmt::join(here.versions, ", ")));
  if (profile.cores > 0 && profile.cores != cores)
    refuse(fmt::format("on {} cores", profile.cores), fmt::format("a machine of {}", cores));
}

std::int64_t ranks_at_work(const CommonFlags& flags, const workload::Cluster& cluster,
                           const costmodel::BackboneShape& backbone,
                           const std::vector<planner::PolicyChoice>& choices) {
  const bool replicas = std::any_of(choices.begin(), choices.end(), [](const planner::PolicyChoice& choice) {
    return choice.policy->parallelism(choice.options).data;
  });
  if (replicas) return cluster.gpus();
  const planner::Overrides overrides = flags.overrides();
  const std::int64_t stages = planner::fixed_stages(overrides).value_or(backbone.layers);
  return std::min(cluster.gpus(), stages * overrides.tp.value_or(1));
}

std::filesystem::path cached_profile(const workload::Workload& workload, const std::string& backend, int threads,
                                     std::int64_t ranks) {
  const costmodel::BackboneShape& shape = workload.backbone;
  const Machine here = machine_here(backend);
  const std::string key =
      fmt::format("13 {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", backend, here.name,
                  fmt::join(here.versions, " "), std::thread::hardware_concurrency(), shape.hidden, shape.intermediate,
                  shape.heads, shape.kv_heads, shape.head_dim, shape.vocabulary, shape.layers,
                  static_cast<int>(shape.architecture), static_cast<int>(shape.nonlinearity),
                  name(workload.held_weights()), shape.qk_norm, shape.qkv_bias, threads, ranks, BRAID_VERSION);
  return cache_folder() / fmt::format("profile-{}.json", hash_bytes(key));
}

void measure_into(const std::filesystem::path& file, const std::filesystem::path& known, const CommonFlags& flags,
                  const PlannedWork& planned, int threads, std::int64_t ranks) {
  if (ranks > 1 && exec::launched_ranks() == 0) {
    const std::vector<std::string> words = measuring_words(file, known, flags, planned, threads);
    if (const int status = launch_ranks(static_cast<int>(ranks), words); status != 0) throw RanksEnded{status};
    return;
  }
  const std::unique_ptr<exec::Communicator> communicator =
      ranks > 1 ? exec::make_mpi_communicator() : exec::make_local_communicator();
  set_thread_count(threads);
  const std::unique_ptr<kernels::Device> device = make_device(backend_of(flags));
  exec::MeasureRequest request;
  request.backend = backend_of(flags);
  request.kernels = kernels_of(flags.kernels);
  request.backbone = planned.workload.backbone;
  request.weights = planned.workload.held_weights();
  for (const workload::Task& task : planned.workload.tasks) request.adapters.push_back(task.adapter);
  request.budget_seconds = flags.profile_budget;
  std::optional<costmodel::Profile> before;
  if (!known.empty()) request.known = &before.emplace(costmodel::read_profile(known));
  exec::PlanDirector director(planned.workload, planned.cluster, planned.data.samples, planned.choices,
                              flags.overrides(), flags.preference(), judge_by_replay(), ranks);
  request.next = [&](const costmodel::Profile& profile, double left) { return director.next(profile, left); };
  Progress progress("measuring", flags.quiet, Progress::Elsewhere::lines);
  request.on_progress = [&](const exec::MeasureProgress& now) {
    progress.update(now.seconds / now.budget, fmt::format("{} points, {}", now.points, now.what));
  };
  costmodel::Profile profile = exec::measure_profile(request, *communicator, *device);
  if (communicator->rank() != 0) return;
  const std::string key = measuring_key(flags, planned);
  if (std::find(profile.measured_for.begin(), profile.measured_for.end(), key) == profile.measured_for.end())
    profile.measured_for.push_back(key);
  write_file(file, costmodel::to_json(profile));
}

std::optional<costmodel::Profile> given_profile(const CommonFlags& flags, const workload::Cluster& cluster) {
  const std::string file = !flags.profile.empty() ? flags.profile : cluster.profile.string();
  if (file.empty() && cluster.own()) return std::nullopt;
  costmodel::Profile profile = file.empty() ? costmodel::analytic_profile(cluster.gpu, costmodel::DataType::bf16)
                                            : costmodel::read_profile(file);
  if (!flags.profile.empty()) check_device(profile, flags.profile, cluster);
  // A cluster file speaks of machines elsewhere.
  if (!flags.profile.empty() && flags.cluster.empty()) check_machine(profile, flags.profile, flags);
  if (profile.device.empty() && !flags.foreign_profile && is_gpu(profile.backend) != is_gpu(backend_of(flags)))
    throw error("{}: was measured with --backend {}, and here that is {}; give --backend {}", file, profile.backend,
                backend_of(flags), profile.backend);
  if (!profile.device.empty() && profile.interconnect == costmodel::Interconnect{})
    profile.interconnect = cluster.interconnect();
  return profile;
}

namespace {

/// What is measured for one set of plans, and where it is kept.
struct Measuring {
  CommonFlags flags;  ///< with the budget of measuring alone
  std::int64_t ranks = 1;
  int threads = 1;
  std::filesystem::path file;
  std::string key;
};

Measuring measuring_for(const CommonFlags& flags, const PlannedWork& planned) {
  Measuring measuring;
  measuring.flags = flags;
  if (planned.choices.size() == 1) measuring.flags.profile_budget *= 1 - kPilotShare;
  measuring.ranks = ranks_at_work(flags, planned.cluster, planned.workload.backbone, planned.choices);
  measuring.threads = threads_of_rank(flags, measuring.ranks);
  measuring.file = cached_profile(planned.workload, backend_of(flags), measuring.threads, measuring.ranks);
  measuring.key = measuring_key(measuring.flags, planned);
  return measuring;
}

bool holds(const costmodel::Profile& profile, const std::string& key) {
  return std::find(profile.measured_for.begin(), profile.measured_for.end(), key) != profile.measured_for.end();
}

/// A workload that does not say has what a GPU's profile says, and f32 on CPUs.
void check_weights(const costmodel::Profile& profile, const workload::Workload& workload) {
  const bool says = workload.base_weights.has_value() || profile.device.empty();
  if (says && profile.dtype != workload.held_weights())
    throw error(
        "the profile is of {} weights, and the workload's base_weights are {}; leave base_weights out, or give a "
        "profile "
        "of them",
        name(profile.dtype), name(workload.held_weights()));
}

bool is_measured_here(const CommonFlags& flags, const workload::Cluster& cluster) {
  return flags.profile.empty() && cluster.profile.empty() && cluster.own();
}

}  // namespace

costmodel::Profile profile_for(const CommonFlags& flags, const PlannedWork& planned) {
  if (std::optional<costmodel::Profile> given = given_profile(flags, planned.cluster)) {
    check_weights(*given, planned.workload);
    return *std::move(given);
  }
  const Measuring measuring = measuring_for(flags, planned);
  const std::filesystem::path& file = measuring.file;
  const bool known = std::filesystem::exists(file);
  if (known) {
    costmodel::Profile profile = costmodel::read_profile(file);
    if (holds(profile, measuring.key)) return profile;
  }
  check_measurable(planned.workload);
  check_writable(file);
  if (!flags.quiet)
    fmt::print(stderr,
               "measuring what the plan needs of this machine ({} ranks of {} threads), at most {:g} s; kept as {}\n",
               measuring.ranks, measuring.threads, measuring.flags.profile_budget, file.string());
  measure_into(file, known ? file : std::filesystem::path(), measuring.flags, planned, measuring.threads,
               measuring.ranks);
  return costmodel::read_profile(file);
}

std::optional<costmodel::Profile> profile_after_pilot(const CommonFlags& flags, const PlannedWork& planned,
                                                      const planner::Plan& plan, double seconds_spent) {
  const bool has_data = std::none_of(planned.workload.tasks.begin(), planned.workload.tasks.end(),
                                     [](const workload::Task& task) { return task.lengths.has_value(); });
  if (!is_measured_here(flags, planned.cluster) || !has_data || planned.cluster.nodes > 1 || exec::launched_ranks() > 0)
    return std::nullopt;
  try {
    exec::check_executable(plan.fixed);
    exec::check_targets(plan.workload);
  } catch (const Error&) {
    return std::nullopt;  // said where it is to be executed
  }
  const Measuring measuring = measuring_for(flags, planned);
  const std::string key = hash_bytes("pilot " + measuring.key);
  if (holds(plan.profile, key)) return std::nullopt;
  const double left = std::max(kPilotShare * flags.profile_budget, flags.profile_budget - seconds_spent);
  costmodel::Profile profile = piloted_profile(plan, planned.data, flags, left);
  profile.measured_for.push_back(key);
  write_file(measuring.file, costmodel::to_json(profile));
  if (profile.pass_skew == plan.profile.pass_skew) return std::nullopt;
  return profile;
}

}  // namespace braid::cli
