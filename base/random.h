#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace braid {

/// Philox 4x32-10 (Salmon et al., SC 2011): four random words that depend on `counter` and `key` alone, so that any
/// element of any stream can be drawn in any order, on any thread.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// Mixes words into one key; different lists give unrelated keys (SplitMix64 finalizer after each word).
std::uint64_t mix_key(std::span<const std::uint64_t> words);

/// A sequence of random numbers: the counter runs from 0 under one key.
class RandomStream {
 public:
  explicit RandomStream(std::uint64_t key) : key_(key) {}

  std::uint32_t next_word();
  /// Uniform in [0, bound), without modulo bias. bound > 0.
  std::uint64_t next_below(std::uint64_t bound);
  /// Uniform in [0, 1).
  double next_uniform();
  /// Normal with mean 0 and deviation 1 (Box-Muller).
  double next_normal();

 private:
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
  int used_ = 4;
  std::array<std::uint32_t, 4> block_{};
};

/// Fisher-Yates.
template <typename T>
void shuffle(std::span<T> items, RandomStream& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.next_below(i)]);
}

}  // namespace braid
