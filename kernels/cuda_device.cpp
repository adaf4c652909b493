#include <cstdlib>
#include <filesystem>

#include <dlfcn.h>

#include "base/error.h"
#include "kernels/device.h"

namespace braid::kernels {
namespace {

/// Where this program lies.
std::filesystem::path program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

/// CUDA's libraries take half a gigabyte of addresses and a moment to load: whoever asks for no GPU is spared. Tests
/// name a library of theirs.
std::filesystem::path library_path() {
  if (const char* named = std::getenv("BRAID_CUDA_LIBRARY")) return named;
  const std::filesystem::path built = program_folder() / "libbraid_cuda.so";
  const std::filesystem::path installed = program_folder().parent_path() / "lib/braid/libbraid_cuda.so";
  return !std::filesystem::exists(built) && std::filesystem::exists(installed) ? installed : built;
}

void* library() {
  const std::filesystem::path library = library_path();
  if (!std::filesystem::exists(library))
    throw error("there is no {}, so this build knows no GPU; build where CUDA 13 with nvcc is installed",
                library.string());
  void* loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded) throw error("{}; install CUDA 13's run-time libraries, or set LD_LIBRARY_PATH to them", ::dlerror());
  return loaded;
}

template <typename Function>
Function* function(const char* name) {
  auto* found = reinterpret_cast<Function*>(::dlsym(library(), name));
  BRAID_CHECK(found, "the library of GPUs has no {}", name);
  return found;
}

}  // namespace

bool built_for_cuda() {
  return std::filesystem::exists(library_path());
}

int count_cuda_devices() {
  return function<int()>("braid_count_cuda_devices")();
}

std::unique_ptr<Device> make_cuda_device(int ordinal, Arithmetic arithmetic) {
  return std::unique_ptr<Device>(
      function<Device*(int ordinal, Arithmetic arithmetic)>("braid_make_cuda_device")(ordinal, arithmetic));
}

}  // namespace braid::kernels
