#pragma once

#include <string>
#include <vector>

#include "costmodel/profile/kernel_choice.h"
#include "costmodel/shapes/adapter.h"
#include "costmodel/shapes/backbone.h"
#include "exec/ranks/communicator.h"
#include "kernels/device.h"

namespace braid::exec {

/// What second kernels are held against the first on: passes through layers of this backbone with these tasks'
/// adapters.
struct KernelTrial {
  const costmodel::BackboneShape& backbone;
  const std::vector<costmodel::AdapterShape>& adapters;
  costmodel::DataType weights = costmodel::DataType::f32;
  double seconds = 0;  ///< that it may take, about
  /// Tokens of a microbatch, in sequences of a fourth each; a choice is made between these.
  std::vector<std::int64_t> sizes = {128, 512, 2048, 8192};
};

struct KernelTrialResult {
  /// Calls that second kernels computed faster, and which they are therefore to compute from here on.
  std::vector<costmodel::KernelChoice> choices;
  std::vector<std::string> notes;  ///< why some of them compute nothing, whatever they take
};

/// Which of the device's second kernels are the faster, by operator, pass, shape and size: all shapes of one rank and
/// of as many shards as there are ranks, each measured in passes of growing size by either kernel in turns; and up to
/// which size microbatches' layers are launched faster as graphs. A second kernel after which gradients are others than
/// after the first is not chosen. Every rank calls this; all are told what rank 0 found. The device is left with the
/// first kernels.
KernelTrialResult try_kernels(const KernelTrial& trial, Communicator& communicator, kernels::Device& device);

}  // namespace braid::exec
