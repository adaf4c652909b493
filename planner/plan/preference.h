#pragma once

#include <string>
#include <string_view>

#include "base/units.h"
#include "costmodel/profile/profile.h"

namespace braid::planner {

/// What is wanted of the plans that fit memory.
enum class Preference {
  speed,  ///< the fastest, in as much memory as there is, as published systems have it
  memory  ///< of those nearly as fast the one with the least memory, and a share of the machine's left free
};
std::string_view name(Preference preference);
/// The preference of that name. Throws Error for any other word.
Preference preference_of(const std::string& word);

/// A plan whose predicted step takes up to so many times the fastest's is nearly as fast.
inline constexpr double kNearlyAsFast = 1.01;

/// A rank's memory: what plans may use of it, and what they leave free.
struct UsableMemory {
  Bytes usable = 0;  ///< 0: not limited
  Bytes free = 0;
};

/// A profile that was measured on CPUs says what is left when costmodel::kFreeMemoryShare of the machine is free: that
/// is usable under either preference. A GPU's says all that it has, of which Preference::memory leaves that share free.
UsableMemory usable_memory(const costmodel::Profile& profile, Preference preference);

/// What a plan that was made for Preference::memory was chosen in place of.
struct Preferred {
  Bytes free_memory_bytes = 0;          ///< of each rank's memory, that no plan could use; 0: memory is not limited
  double fastest_step_seconds = 0;      ///< predicted of the fastest plan that was found
  Bytes fastest_peak_memory_bytes = 0;  ///< of that plan's fullest rank

  bool operator==(const Preferred&) const = default;
};

struct Prediction;
/// How much longer than the fastest plan's the step is predicted to take; 0.004 is 0.4 %.
double given_up(const Preferred& preferred, const Prediction& chosen);
/// Bytes that the fullest rank needs less than the fastest plan's.
Bytes saved(const Preferred& preferred, const Prediction& chosen);
/// "least memory within 1 % of the fastest: 4.10 GB in place of 16.00 GB for +0.4 % step".
std::string describe(const Preferred& preferred, const Prediction& chosen);

}  // namespace braid::planner
