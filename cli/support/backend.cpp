#include "cli/support/backend.h"

#include <algorithm>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "exec/ranks/communicator.h"

namespace braid::cli {

std::string backend_of(const CommonFlags& flags) {
  return flags.backend.empty() ? "cpu" : flags.backend;
}

std::string backend_of(const CommonFlags& flags, const planner::Plan& plan) {
  return flags.backend.empty() ? plan.profile.backend : flags.backend;
}

std::unique_ptr<kernels::Device> make_device(const std::string& backend) {
  if (backend == "cpu") return kernels::make_cpu_device();
  if (backend == "reference") return kernels::make_reference_device();
  if (backend == "cuda") return kernels::make_cuda_device(exec::local_rank());
  if (backend == "cuda-f32") return kernels::make_cuda_device(exec::local_rank(), kernels::Arithmetic::f32);
  if (backend == "cuda-tf32") return kernels::make_cuda_device(exec::local_rank(), kernels::Arithmetic::tf32);
  throw error("--backend {}: unknown; known: cpu, reference, cuda, cuda-f32, cuda-tf32", backend);
}

std::unique_ptr<kernels::Device> make_device(const CommonFlags& flags, const planner::Plan& plan) {
  const std::string backend = backend_of(flags, plan);
  std::unique_ptr<kernels::Device> device = make_device(backend);
  // Of another backend than the plan is for they are not its kernels.
  if (backend == plan.profile.backend) device->choose_kernels(plan.profile.kernels);
  return device;
}

std::optional<std::vector<costmodel::KernelChoice>> kernels_of(const std::string& words) {
  if (words == "faster") return std::nullopt;
  std::vector<costmodel::KernelChoice> choices;
  if (words == "plain") return choices;
  constexpr std::string_view kGive = "give faster, plain, or some of joined,cudnn,graphs";
  if (words.empty()) throw error("--kernels is empty; {}", kGive);
  std::istringstream text(words);
  for (std::string word; std::getline(text, word, ',');) {
    constexpr std::pair<std::string_view, costmodel::Operator> kWords[] = {{"joined", costmodel::Operator::linear},
                                                                           {"cudnn", costmodel::Operator::attention},
                                                                           {"graphs", costmodel::Operator::launch}};
    const auto known = std::ranges::find(kWords, word, &std::pair<std::string_view, costmodel::Operator>::first);
    if (known == std::end(kWords)) throw error("--kernels {}: '{}' is unknown; {}", words, word, kGive);
    const std::vector<costmodel::KernelChoice> all = costmodel::all_of(known->second);
    choices.insert(choices.end(), all.begin(), all.end());
  }
  return choices;
}

bool is_gpu(const std::string& backend) {
  return backend.starts_with("cuda");
}

std::int64_t ranks_here(const std::string& backend) {
  if (is_gpu(backend)) return kernels::count_cuda_devices();
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace braid::cli
