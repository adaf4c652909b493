#include "base/units.h"

#include <fmt/format.h>

namespace braid {

std::string describe_bytes(Bytes bytes) {
  const double value = static_cast<double>(bytes), size = std::abs(value);
  // 999.95 MB and more would be told as 1000.0 MB.
  if (size >= 999.95e6) return fmt::format("{:.2f} GB", value / 1e9);
  // Likewise.
  if (size >= 999.95e3) return fmt::format("{:.1f} MB", value / 1e6);
  if (size >= 1e3) return fmt::format("{:.1f} kB", value / 1e3);
  return fmt::format("{} bytes", bytes);
}

}  // namespace braid
