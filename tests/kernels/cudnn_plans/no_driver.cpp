#include <set>

/// In place of the GPU's driver where there is none, for cuDNN to compile with: kernels are loaded and found, so that
/// plans are finished, and nothing runs.
namespace {

constexpr int kSuccess = 0, kNoDriver = 34;
std::set<const void*> loaded;

}  // namespace

extern "C" {

/// How many compiled kernels were loaded, each counted once.
int no_driver_kernels() {
  return static_cast<int>(loaded.size());
}

int cuInit(unsigned /*flags*/) {
  return kNoDriver;
}
int cuLibraryLoadData(const void** library, const void* code) {
  *library = code;
  loaded.insert(code);
  return kSuccess;
}
int cuLibraryGetKernel(void** kernel, void* library) {
  *kernel = library;
  return kSuccess;
}

#define NOTHING(function) \
  int function() {        \
    return kSuccess;      \
  }
NOTHING(cuCtxGetCurrent)
NOTHING(cuCtxGetLimit)
NOTHING(cuCtxPopCurrent)
NOTHING(cuCtxPushCurrent)
NOTHING(cuDeviceGet)
NOTHING(cuDeviceGetCount)
NOTHING(cuDriverGetVersion)
NOTHING(cuGetErrorName)
NOTHING(cuGetErrorString)
NOTHING(cuKernelGetAttribute)
NOTHING(cuKernelSetAttribute)
NOTHING(cuLaunchCooperativeKernel)
NOTHING(cuLaunchKernel)
NOTHING(cuLaunchKernelEx)
NOTHING(cuLibraryLoadFromFile)
NOTHING(cuLibraryUnload)
NOTHING(cuLinkAddData)
NOTHING(cuLinkComplete)
NOTHING(cuLinkCreate)
NOTHING(cuLinkDestroy)
NOTHING(cuOccupancyMaxPotentialClusterSize)
NOTHING(cuStreamGetCtx)
}
