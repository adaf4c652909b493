#include "base/random.h"

#include <cmath>
#include <numbers>

namespace braid {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

std::uint64_t mix_key(std::span<const std::uint64_t> words) {
  std::uint64_t key = 0x9E3779B97F4A7C15;
  for (const std::uint64_t word : words) {
    key += word + 0x9E3779B97F4A7C15;
    key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9;
    key = (key ^ (key >> 27)) * 0x94D049BB133111EB;
    key ^= key >> 31;
  }
  return key;
}

std::uint32_t RandomStream::next_word() {
  if (used_ == 4) {
    block_ = philox({static_cast<std::uint32_t>(counter_), static_cast<std::uint32_t>(counter_ >> 32), 0, 0},
                    {static_cast<std::uint32_t>(key_), static_cast<std::uint32_t>(key_ >> 32)});
    ++counter_;
    used_ = 0;
  }
  return block_[static_cast<std::size_t>(used_++)];
}

std::uint64_t RandomStream::next_below(std::uint64_t bound) {
  const std::uint64_t rejected_from = UINT64_MAX - UINT64_MAX % bound;
  for (;;) {
    const std::uint64_t high = next_word();
    const std::uint64_t word = (high << 32) | next_word();
    if (word < rejected_from) return word % bound;
  }
}

double RandomStream::next_uniform() {
  const std::uint64_t high = next_word();
  const std::uint64_t word = (high << 32) | next_word();
  return static_cast<double>(word >> 11) * 0x1.0p-53;
}

double RandomStream::next_normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - next_uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * next_uniform());
}

}  // namespace braid
