#include "planner/latency/load_table.h"

namespace braid::planner {
namespace {

using costmodel::MicrobatchLoad;

std::size_t hash_of(const MicrobatchLoad& load, std::int64_t scored) {
  std::size_t hash = 0;
  const auto mix = [&](std::int64_t number) {
    constexpr std::size_t kOdd = 0x9E3779B97F4A7C15;
    hash = (hash ^ static_cast<std::size_t>(number)) * kOdd;
    hash ^= hash >> 29;
  };
  mix(load.tokens);
  mix(scored);
  for (const costmodel::SequenceLoad& sequence : load.sequences)
    mix(sequence.prefix * (1LL << 32) + sequence.context * 2 + sequence.continues);
  for (const costmodel::TaskRows& task : load.tasks) {
    mix(task.tokens);
    mix(task.adapter.rank * 64 + static_cast<int>(task.adapter.method));
  }
  return hash;
}

bool alike(const MicrobatchLoad& known, const MicrobatchLoad& load, std::int64_t scored) {
  return known.tokens == load.tokens && known.scored == scored && known.kernels == load.kernels &&
         known.sequences == load.sequences && known.tasks == load.tasks;
}

}  // namespace

std::int32_t LoadTable::number(const MicrobatchLoad& load, std::int64_t scored) {
  const std::size_t hash = hash_of(load, scored);
  const auto [first, last] = numbers_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    if (alike((*this)[known->second], load, scored)) return known->second;
  }
  const auto number = static_cast<std::int32_t>(loads_.size());
  loads_.push_back(load);
  loads_.back().scored = scored;
  numbers_.emplace(hash, number);
  return number;
}

}  // namespace braid::planner
