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

}  // namespace

/// CUDA's libraries take half a gigabyte of addresses and a moment to load: whoever asks for no GPU is spared.
std::unique_ptr<Device> make_cuda_device(int ordinal, costmodel::DataType activations) {
  using Make = Device*(int ordinal, bool f32);
  const std::filesystem::path library = program_folder() / "libbraid_cuda.so";
  if (!std::filesystem::exists(library))
    throw error("there is no {}, so this build knows no GPU; build where CUDA 13 with nvcc is installed",
                library.string());
  void* loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded) throw error("{}; install CUDA 13's run-time libraries, or set LD_LIBRARY_PATH to them", ::dlerror());
  const auto make = reinterpret_cast<Make*>(::dlsym(loaded, "braid_make_cuda_device"));
  BRAID_CHECK(make, "{} makes no device", library.string());
  return std::unique_ptr<Device>(make(ordinal, activations == costmodel::DataType::f32));
}

}  // namespace braid::kernels
