#pragma once

#include <span>

#include "planner/plan/policy.h"

// What a policy takes a microbatch to be before samples are laid out.
namespace braid::planner {

/// One microbatch of a task's global batch: the largest that an even split over microbatches and replicas gives, its
/// samples of the mean length where they are not padded, else of max_length.
costmodel::MicrobatchLoad task_load(const PolicyInput& input, TaskIndex task, Padding padding,
                                    costmodel::AdapterKernels kernels);

/// Tasks' loads side by side in one microbatch.
costmodel::MicrobatchLoad merge(std::span<const costmodel::MicrobatchLoad> loads);

}  // namespace braid::planner
