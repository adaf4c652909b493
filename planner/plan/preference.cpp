#include "planner/plan/preference.h"

#include <algorithm>

#include "base/error.h"
#include "base/named.h"
#include "planner/plan/plan.h"

namespace braid::planner {

std::string_view name(Preference preference) {
  return preference == Preference::speed ? "speed" : "memory";
}

Preference preference_of(const std::string& word) {
  constexpr Preference kPreferences[] = {Preference::memory, Preference::speed};
  if (const auto preference = value_named(word, kPreferences)) return *preference;
  throw error("--prefer {} is not usable; give one of: {}", word, names_of(kPreferences));
}

UsableMemory usable_memory(const costmodel::Profile& profile, Preference preference) {
  const Bytes told = profile.memory_bytes;
  const auto share = [](Bytes whole, double part) { return static_cast<Bytes>(part * static_cast<double>(whole)); };
  constexpr double kFree = costmodel::kFreeMemoryShare;
  if (profile.device.empty()) return {told, share(told, kFree / (1 - kFree))};
  const Bytes free = preference == Preference::memory ? share(told, kFree) : 0;
  return {told - free, free};
}

namespace {

Bytes fullest(const Prediction& prediction) {
  const std::vector<Bytes>& peaks = prediction.peak_memory_bytes;
  return peaks.empty() ? 0 : *std::max_element(peaks.begin(), peaks.end());
}

}  // namespace

double given_up(const Preferred& preferred, const Prediction& chosen) {
  return preferred.fastest_step_seconds > 0 ? chosen.step_seconds / preferred.fastest_step_seconds - 1 : 0;
}

Bytes saved(const Preferred& preferred, const Prediction& chosen) {
  return preferred.fastest_peak_memory_bytes - fullest(chosen);
}

std::string describe(const Preferred& preferred, const Prediction& chosen) {
  const std::string what = fmt::format("least memory within {:.0f} % of the fastest", 100 * (kNearlyAsFast - 1));
  const double slower = given_up(preferred, chosen);
  if (saved(preferred, chosen) == 0 && slower == 0) return what + ": the fastest itself";
  return fmt::format("{}: {} in place of {} for {:+.1f} % step", what, describe_bytes(fullest(chosen)),
                     describe_bytes(preferred.fastest_peak_memory_bytes), 100 * slower);
}

}  // namespace braid::planner
