#pragma once

#include <memory>
#include <string>

#include "cli/support/options.h"
#include "kernels/device.h"
#include "planner/plan/plan.h"

namespace braid::cli {

/// What computes: what --backend says, else what the plan was made for, else the processor.
std::string backend_of(const CommonFlags& flags);
std::string backend_of(const CommonFlags& flags, const planner::Plan& plan);

/// A processor, or this rank's GPU: the one of its number among the ranks of its host. Throws Error for a name that is
/// unknown, Failure where there is no such GPU.
std::unique_ptr<kernels::Device> make_device(const std::string& backend);

bool is_gpu(const std::string& backend);
/// Ranks that this machine has of the backend: cores, or GPUs. Throws as make_device does.
std::int64_t ranks_here(const std::string& backend);

}  // namespace braid::cli
