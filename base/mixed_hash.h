#pragma once

#include <cstddef>
#include <cstdint>

namespace braid {

/// A hash of numbers, one after another, for tables in memory: by multiplication with an odd number near 2^64 over the
/// golden ratio, whose upper bits, which depend on all of a number's, are folded into the lower ones that tables use.
class MixedHash {
 public:
  explicit MixedHash(std::int64_t first = 0) { add(first); }
  MixedHash& add(std::int64_t number) {
    constexpr std::size_t kOdd = 0x9E3779B97F4A7C15;
    hash_ = (hash_ ^ static_cast<std::size_t>(number)) * kOdd;
    hash_ ^= hash_ >> 29;
    return *this;
  }
  std::size_t value() const { return hash_; }

 private:
  std::size_t hash_ = 0;
};

}  // namespace braid
