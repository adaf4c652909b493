#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

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
/// What is to execute the plan, by the kernels that its profile was measured with.
std::unique_ptr<kernels::Device> make_device(const CommonFlags& flags, const planner::Plan& plan);

/// What --kernels of `braid profile` says: nothing for those that are measured to be the faster. Throws Error for words
/// that it does not know.
std::optional<std::vector<costmodel::KernelChoice>> kernels_of(const std::string& words);

bool is_gpu(const std::string& backend);
/// Ranks that this machine has of the backend: cores, or GPUs. Throws as make_device does.
std::int64_t ranks_here(const std::string& backend);

}  // namespace braid::cli
