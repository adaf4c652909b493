#include "cli/commands/analytic.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <boost/program_options/value_semantic.hpp>
#include <fmt/core.h>

#include "base/error.h"
#include "base/file.h"
#include "costmodel/profile/derive.h"
#include "workload/workload.h"

namespace braid::cli {
namespace {

/// Whose operators a derived profile has entries of.
struct DerivedWork {
  costmodel::BackboneShape backbone;
  std::vector<costmodel::AdapterShape> adapters;
  std::int64_t longest_context = 0;
};

/// Whose operators a derived profile tells where no workload is given: LLaMA-7B with adapters on its attention.
DerivedWork usual_work() {
  costmodel::AdapterShape adapter;
  adapter.rank = 16;
  adapter.alpha = 32;
  for (const costmodel::Module module :
       {costmodel::Module::q, costmodel::Module::k, costmodel::Module::v, costmodel::Module::o})
    adapter.targets[static_cast<std::size_t>(module)] = true;
  return {costmodel::builtin_backbone("llama2-7b"), {adapter}, 4096};
}

DerivedWork work_of(const workload::Workload& workload) {
  DerivedWork work{workload.backbone, {}, 0};
  for (const workload::Task& task : workload.tasks) {
    work.adapters.push_back(task.adapter);
    work.longest_context = std::max(work.longest_context, task.max_length);
  }
  return work;
}

}  // namespace

void add_analytic(CommandLine& line, AnalyticFlags& flags) {
  namespace options = boost::program_options;
  line.add().add_options()("analytic", options::value(&flags.gpu),
                           "derive the profile of a GPU from its datasheet, such as h100, with entries of the "
                           "workload's operators, else of LLaMA-7B's; an unknown name lists them");
  line.add().add_options()("dtype", options::value(&flags.dtype)->default_value("bf16"),
                           "of a derived profile: f32, bf16, f16 or int8");
  line.add().add_options()(
      "exposed-launch-seconds", options::value(&flags.exposed_launch_seconds)->default_value(0),
      "of a derived profile: what the GPU waits for each kernel under an eager framework, such as 24e-6; 0: the host "
      "runs ahead");
  line.add().add_options()("overlap-slowdown", options::value<double>()->notifier([&](double slowdown) {
    flags.overlap_slowdown = slowdown;
  }),
                           "of a derived profile: how many times as long compute takes beside a collective, such as "
                           "1.2; left out: by the multiprocessors that 8 thread blocks of NCCL leave");
  line.add().add_options()("clock", options::value(&flags.clock)->default_value(1),
                           "of a derived profile: at which share of its full frequency the GPU computes, such as 0.8");
  line.add().add_options()("attention", options::value(&flags.attention)->default_value("flash"),
                           "of a derived profile: flash, or eager, which writes and keeps the scores of all pairs");
  line.add().add_options()("loss-in-place", options::bool_switch(&flags.loss_in_place),
                           "of a derived profile: the loss works in one f32 copy of the logits, as Megatron-LM's does, "
                           "where PyTorch's holds three");
}

void check(const AnalyticFlags& flags) {
  const double waits = flags.exposed_launch_seconds, slowdown = flags.overlap_slowdown.value_or(1);
  if (!(waits >= 0 && waits <= 1))
    throw error("--exposed-launch-seconds {} is no time a launch; give seconds, such as 24e-6", waits);
  if (!(slowdown >= 1 && slowdown <= costmodel::kMostSlowdown))
    throw error("--overlap-slowdown {} is no slowdown; give 1 to {}, such as 1.2", slowdown, costmodel::kMostSlowdown);
  if (!(flags.clock >= costmodel::kLeastClock && flags.clock <= 1))
    throw error("--clock {} is no share of the full frequency; give {} to 1", flags.clock, costmodel::kLeastClock);
}

void derive(const AnalyticFlags& analytic, const CommonFlags& flags) {
  if (flags.out.empty()) throw error("--out is missing; give a file for the profile of {}", analytic.gpu);
  if (std::filesystem::exists(flags.out) && !flags.overwrite)
    throw error("{}: exists; give another file or --overwrite", flags.out);
  const costmodel::DataType dtype = costmodel::data_type_of(analytic.dtype);
  if (dtype == costmodel::DataType::nf4)
    throw error("--dtype nf4 is of training on CPUs alone; give bf16, f16, f32 or int8");
  costmodel::Profile profile = costmodel::analytic_profile(analytic.gpu, dtype);
  profile.exposed_launch_seconds = analytic.exposed_launch_seconds;
  profile.overlap_slowdown = analytic.overlap_slowdown.value_or(0);
  profile.clock = analytic.clock;
  profile.attention = costmodel::attention_kind_of(analytic.attention);
  profile.loss_in_place = analytic.loss_in_place;
  const DerivedWork work = flags.workload.empty() ? usual_work() : work_of(workload::read_workload(flags.workload));
  constexpr std::int64_t kMostTokens = 16384;
  profile.entries =
      costmodel::derived_entries(profile, work.backbone, work.adapters, kMostTokens, work.longest_context);
  write_file(flags.out, costmodel::to_json(profile));
  fmt::print("{}: {:.1f} TFLOP/s in {}, {} entries, written to {}\n", describe(profile), profile.peak_flops / 1e12,
             analytic.dtype, profile.entries.size(), flags.out);
}

}  // namespace braid::cli
