#pragma once

#include <chrono>

namespace braid {

/// Of the machine; never set.
using SteadyClock = std::chrono::steady_clock;

inline double seconds_between(SteadyClock::time_point start, SteadyClock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

inline double seconds_since(SteadyClock::time_point start) {
  return seconds_between(start, SteadyClock::now());
}

}  // namespace braid
