#pragma once

#include <string>
#include <vector>

#include "exec/trainer.h"
#include "planner/plan.h"

namespace braid::cli {

/// A figure twice: as predicted, and as measured.
struct Compared {
  std::string what;
  double predicted = 0;
  double measured = 0;
  std::int64_t count = 0;  ///< how many it is made of

  /// (predicted − measured) / measured.
  double error() const { return measured != 0 ? (predicted - measured) / measured : 0; }
};

/// One Program, executed and replayed: the signed errors of the prediction.
struct Comparison {
  std::int64_t windows = 0;  ///< compared, after warm-up
  std::vector<Compared> kinds;   ///< seconds, summed over ranks and windows, per instruction kind
  std::vector<Compared> stages;  ///< busy seconds of compute
  Compared step;                 ///< median seconds of a window
  std::vector<Compared> memory;  ///< peak bytes of each rank
};

/// How many recorded windows are left out: they run things for the first time.
inline constexpr std::size_t kWarmUpWindows = 2;

/// Holds the recorded windows, less the first kWarmUpWindows, against their replay with the plan's profile.
Comparison compare(const planner::Plan& plan, const workload::SampleIndex& samples, const exec::TrainResult& result, const std::vector<Bytes>& peaks);

std::string to_json(const Comparison& comparison);
void print(const Comparison& comparison);

}  // namespace braid::cli
