#pragma once

#include "exec/profiling/measured_samples.h"
#include "kernels/device.h"

namespace braid::exec {

/// In one round. Medians over passes stay put from here on; longer passes are run fewer times.
inline constexpr std::int64_t kMostPasses = 6;
/// Neighbouring sizes of what is measured by size alone are this far apart.
inline constexpr double kGridStep = 2;

/// What the device takes for what `work` calls on it.
template <typename Work>
double seconds_of(kernels::Device& device, const Work& work) {
  const std::unique_ptr<kernels::Event> begun = device.record();
  work();
  const std::unique_ptr<kernels::Event> ended = device.record();
  device.wait();
  return seconds_between(*begun->ended(), *ended->ended());
}

/// Optimizer steps and norms of adapters of growing size, up to `most_parameters` numbers.
void measure_optimizers(const costmodel::BackboneShape& backbone, std::int64_t most_parameters, kernels::Device& device,
                        MeasuredSamples& samples);

/// What a GPU's datasheet is held against (costmodel/profile/profile_fit): copies within its memory, and launches.
void measure_gpu(kernels::Device& device, MeasuredSamples& samples);

}  // namespace braid::exec
