#include "planner/latency/load_table.h"

#include "base/mixed_hash.h"

namespace braid::planner {
namespace {

using costmodel::MicrobatchLoad;

std::size_t hash_of(const MicrobatchLoad& load, std::int64_t scored) {
  MixedHash hash(load.tokens);
  hash.add(scored);
  for (const costmodel::SequenceLoad& sequence : load.sequences)
    hash.add(sequence.prefix * (1LL << 32) + sequence.context * 2 + sequence.continues);
  for (const costmodel::TaskRows& task : load.tasks) {
    hash.add(task.tokens).add(task.adapter.rank * 64 + static_cast<int>(task.adapter.method));
  }
  return hash.value();
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
