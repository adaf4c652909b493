#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/profile/profile.h"
#include "exec/profiling/measured_points.h"
#include "exec/ranks/communicator.h"
#include "kernels/device.h"

namespace braid::exec {

/// How far measuring is, on rank 0.
struct MeasureProgress {
  std::string what;         ///< that is measured now
  std::int64_t points = 0;  ///< measured so far, each time counted
  double seconds = 0;       ///< since measuring began
  double budget = 0;        ///< seconds that it may take
};

/// What to measure. Every rank has the same backbone, adapters, known profile and budget.
struct MeasureRequest {
  costmodel::BackboneShape backbone;
  std::vector<costmodel::AdapterShape> adapters;           ///< the tasks'; at least one
  costmodel::DataType weights = costmodel::DataType::f32;  ///< of the layers' products
  std::string backend = "cpu";                             ///< as the profile names the device
  /// What was measured before on this machine with as many ranks and threads of this backbone; nullptr: nothing.
  const costmodel::Profile* known = nullptr;
  double budget_seconds = 60;
  /// Which calls the device's second kernels compute; nothing: those that they are found to compute faster. Where
  /// something is known they stay as they were.
  std::optional<std::vector<costmodel::KernelChoice>> kernels;
  /// On rank 0: what to measure next, given all that is known by then and the seconds left. An empty answer ends it.
  std::function<std::vector<MeasuredPoint>(const costmodel::Profile&, double seconds_left)> next;
  std::function<void(const MeasureProgress&)> on_progress;  ///< on rank 0
};

/// Measures `device`'s operators on this machine, with all ranks of `communicator` at work at once, as they will be in
/// a run.
///
/// Operators are timed where they run: inside forward and backward passes through layers of random weights, so that
/// caches are as warm and as cold as in training. Each entry is the median over several passes, told at the pace that
/// the machine had in the median, or when the known profile was measured. Once the budget is spent only points that are
/// needed are measured. `pass_skew` is what whole passes of the points took over what the profile predicts of them: the
/// median over those that are not needed, where there are any. Every rank calls this; rank 0 has the result.
costmodel::Profile measure_profile(const MeasureRequest& request, Communicator& communicator, kernels::Device& device);

/// How many layers passes go through unless a point says otherwise: as many as a rank of a run has, but no more than
/// fill caches, and two at least, the bottom one and one like all others.
std::int64_t probed_layers(const costmodel::BackboneShape& backbone, std::int64_t ranks);

/// The best rate of a large matrix product of activations on this process's device, FLOP/s: the median of several.
double measure_peak_flops(kernels::Device& device);

/// The libraries, MPI and the compiler that measured times depend on.
std::vector<std::string> machine_versions(const kernels::Device& device);

}  // namespace braid::exec
