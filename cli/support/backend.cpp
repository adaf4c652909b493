#include "cli/support/backend.h"

#include <algorithm>
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
  if (backend == "cuda-joined") return kernels::make_cuda_device(exec::local_rank(), kernels::Arithmetic::joined);
  throw error("--backend {}: unknown; known: cpu, reference, cuda, cuda-joined, cuda-f32, cuda-tf32", backend);
}

bool is_gpu(const std::string& backend) {
  return backend.starts_with("cuda");
}

std::int64_t ranks_here(const std::string& backend) {
  if (is_gpu(backend)) return kernels::count_cuda_devices();
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace braid::cli
