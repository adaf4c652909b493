#pragma once

#include <cmath>
#include <cstdint>
#include <string>

namespace braid {

using Nanoseconds = std::int64_t;
using Bytes = std::int64_t;

/// In seconds.
inline constexpr double kMinute = 60;
inline constexpr double kHour = 60 * kMinute;
inline constexpr double kDay = 24 * kHour;

inline constexpr Bytes kKibibyte = 1024;
inline constexpr Bytes kMebibyte = 1024 * kKibibyte;
inline constexpr Bytes kGibibyte = 1024 * kMebibyte;

/// As people read it, in every message and table: "1.23 GB", "12.3 MB", of less than 0.1 MB "12345 bytes".
std::string describe_bytes(Bytes bytes);

/// Rounds to the nearest nanosecond.
inline Nanoseconds nanoseconds(double seconds) {
  return static_cast<Nanoseconds>(std::llround(seconds * 1e9));
}

inline double seconds(Nanoseconds time) {
  return static_cast<double>(time) * 1e-9;
}

}  // namespace braid
