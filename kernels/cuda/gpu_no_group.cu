#include "base/error.h"
#include "kernels/cuda/gpu_group.h"

/// In place of gpu_group.cu where there is no nccl.h.
namespace braid::kernels::cuda {

std::string new_group_name() {
  throw Failure("plans of several GPUs need NCCL, which was not there when braid was built; build with nccl.h");
}

std::unique_ptr<DeviceGroup> join_nccl_group(const std::string& /*name*/, int /*size*/, int /*place*/,
                                             EventClock& /*clock*/, LiveGroups& /*live*/) {
  throw InternalError("a group without NCCL");
}

void wait_patiently(cudaStream_t stream, const LiveGroups& /*groups*/) {
  check(cudaStreamSynchronize(stream));
}

}  // namespace braid::kernels::cuda
