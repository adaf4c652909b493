#pragma once

#include <set>
#include <string>

#include "kernels/cuda/gpu_event.h"

namespace braid::kernels::cuda {

class NcclGroup;
/// That a device is in, and has not left.
using LiveGroups = std::set<NcclGroup*>;

/// Of GPUs, by NCCL, which is loaded when a group is made. Throws Failure where there is none.
std::string new_group_name();
/// `live` knows the group as long as it lives.
std::unique_ptr<DeviceGroup> join_nccl_group(const std::string& name, int size, int place, EventClock& clock,
                                             LiveGroups& live);

/// Until all that is in the stream has ended. Throws Failure where a group fails, or where nothing has ended for ten
/// minutes.
void wait_patiently(cudaStream_t stream, const LiveGroups& groups);

}  // namespace braid::kernels::cuda
