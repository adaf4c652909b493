#pragma once

#include <chrono>

namespace braid {

/// Of the machine; never set back.
using WallClock = std::chrono::steady_clock;

inline double seconds_since(WallClock::time_point start) {
  return std::chrono::duration<double>(WallClock::now() - start).count();
}

}  // namespace braid
