#pragma once

#include <chrono>

namespace braid {

/// Of the machine; never set.
using SteadyClock = std::chrono::steady_clock;

inline double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

}  // namespace braid
