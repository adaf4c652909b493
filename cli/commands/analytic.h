#pragma once

#include <optional>
#include <string>

#include "cli/support/options.h"

namespace braid::cli {

/// `braid profile --analytic` and what goes with it.
struct AnalyticFlags {
  std::string gpu, dtype, attention;
  double exposed_launch_seconds = 0;
  std::optional<double> overlap_slowdown;
  double clock = 1;
  bool loss_in_place = false;
};

void add_analytic(CommandLine& line, AnalyticFlags& flags);

/// Throws Error for numbers that are none of the kind, and for flags of a derived profile without a GPU.
void check(const AnalyticFlags& flags);

/// Writes the profile of a GPU nobody holds, with what the workload's operators come to there, and says so.
void derive(const AnalyticFlags& analytic, const CommonFlags& flags);

}  // namespace braid::cli
