#include "cli/profiles.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include <fmt/core.h>

#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "cli/launch.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "costmodel/device.h"
#include "costmodel/profile.h"
#include "kernels/versions.h"

namespace braid::cli {
namespace {

/// Beyond this a pass through two layers takes over about a third of a second on a core of 60 GFLOP/s, and time is as
/// good as linear in tokens.
std::int64_t affordable_tokens(const costmodel::BackboneShape& backbone) {
  const double numbers =
      2.0 * static_cast<double>(backbone.layer_parameters()) + static_cast<double>(backbone.embedding_parameters());
  const double tokens = 0.35 * 60e9 / (4 * numbers);
  return std::clamp<std::int64_t>(
      static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max(tokens, 1.0)))), 512, 8192);
}

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

}  // namespace

exec::MeasureRequest measure_request(const workload::Workload& workload) {
  exec::MeasureRequest request;
  request.backbone = workload.backbone;
  std::int64_t samples = 0, longest = 0;
  for (const workload::Task& task : workload.tasks) {
    request.adapters.push_back(task.adapter);
    samples += task.global_batch_size;
    longest = std::max(longest, task.max_length);
  }
  request.longest_context = longest;
  request.most_tokens = std::min(samples * longest, affordable_tokens(workload.backbone));
  return request;
}

std::filesystem::path cached_profile(const workload::Workload& workload, int threads, std::int64_t ranks) {
  const exec::MeasureRequest request = measure_request(workload);
  const costmodel::BackboneShape& shape = request.backbone;
  std::string key = fmt::format("8 {} {} {} {} {} {} {} {} {} {} {} {} {}", exec::machine_name(),
                                fmt::join(kernels::library_versions(), " "), exec::mpi_version(), shape.hidden,
                                shape.intermediate, shape.heads, shape.kv_heads, shape.head_dim, shape.vocabulary,
                                shape.layers, threads, ranks, BRAID_VERSION);
  key += fmt::format(" {} {}", request.most_tokens, request.longest_context);
  for (const costmodel::AdapterShape& adapter : request.adapters) {
    key += fmt::format(" {} {} {}", adapter.rank, adapter.dropout > 0, fmt::join(adapter.targets, ""));
  }
  return cache_folder() / fmt::format("profile-{}.json", hash_bytes(key));
}

void measure_into(const std::filesystem::path& file, const CommonFlags& flags,
                  const std::filesystem::path& workload_file, int threads, std::int64_t ranks) {
  if (ranks > 1 && exec::launched_ranks() == 0) {
    std::vector<std::string> words = {"profile",     "--workload", workload_file.string(),  "--out",
                                      file.string(), "--threads",  std::to_string(threads), "--overwrite"};
    if (flags.quiet) words.emplace_back("--quiet");
    if (const int status = launch_ranks(static_cast<int>(ranks), words); status != 0) throw RanksEnded{status};
    return;
  }
  exec::MeasureRequest request = measure_request(workload::read_workload(workload_file));
  const std::unique_ptr<exec::Communicator> communicator =
      ranks > 1 ? exec::make_mpi_communicator() : exec::make_local_communicator();
  set_thread_count(threads);
  // mpirun hands its terminal to nobody, so ranks tell in plain lines.
  Progress progress("profiling", flags.quiet);
  request.on_progress = [&](double share) { progress.update(share); };
  const costmodel::Profile profile = exec::measure_profile(request, *communicator);
  if (communicator->rank() == 0) write_file(file, costmodel::to_json(profile));
}

costmodel::Profile profile_for(const CommonFlags& flags, const workload::Workload& workload,
                               const workload::Cluster& cluster) {
  const std::string file_given = !flags.profile.empty() ? flags.profile : cluster.profile.string();
  if (!file_given.empty() || cluster.gpu != "cpu") {
    costmodel::Profile profile = file_given.empty()
                                     ? costmodel::analytic_profile(cluster.gpu, costmodel::DataType::bf16)
                                     : costmodel::read_profile(file_given);
    if (!flags.profile.empty()) check_device(profile, flags.profile, cluster);
    if (!profile.device.empty() && profile.interconnect == costmodel::Interconnect{})
      profile.interconnect = cluster.interconnect();
    return profile;
  }
  const std::int64_t stages =
      planner::fixed_stages(flags.overrides()).value_or(std::min(cluster.gpus(), workload.backbone.layers));
  const int threads = threads_of_rank(flags, stages);
  const std::filesystem::path file = cached_profile(workload, threads, stages);
  if (!std::filesystem::exists(file)) {
    if (workload.backbone_folder.empty())
      throw error("backbone '{}' has no weights here to measure with; give --profile FILE",
                  workload.backbone_reference);
    check_writable(file);
    if (!flags.quiet)
      fmt::print(stderr, "measuring a profile of this machine ({} ranks of {} threads); kept as {}\n", stages, threads,
                 file.string());
    measure_into(file, flags, workload.file, threads, stages);
  }
  return costmodel::read_profile(file);
}

}  // namespace braid::cli
