#include "costmodel/stage_latency.h"

namespace braid::costmodel {
namespace {

class Hash {
 public:
  Hash& add(std::int64_t number) {
    constexpr std::size_t kOdd = 0x9E3779B97F4A7C15;
    hash_ = (hash_ ^ static_cast<std::size_t>(number)) * kOdd;
    hash_ ^= hash_ >> 29;
    return *this;
  }
  std::size_t value() const { return hash_; }

 private:
  std::size_t hash_ = 0;
};

std::size_t hash_of(const StageShape& stage, const MicrobatchLoad& load, Pass pass) {
  Hash hash;
  hash.add(stage.layers * 4 + stage.has_embedding * 2 + stage.has_head).add(stage.tp).add(static_cast<int>(pass));
  hash.add(load.tokens).add(load.scored);
  for (const SequenceLoad& sequence : load.sequences) hash.add(sequence.prefix * (1LL << 32) + sequence.context);
  for (const TaskRows& task : load.tasks) hash.add(task.tokens * (1LL << 20) + task.adapter.rank);
  return hash.value();
}

}  // namespace

const Estimate& StageLatency::estimate(const StageShape& stage, const MicrobatchLoad& load, Pass pass) {
  const std::size_t hash = hash_of(stage, load, pass);
  const auto [first, last] = known_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    const Question& asked = known->second.first;
    if (asked.pass == pass && asked.stage == stage && asked.load == load) return known->second.second;
  }
  const Estimate answer = cost_.estimate(stage_operators(backbone_, stage, load, pass));
  return known_.emplace(hash, std::pair(Question{stage, pass, load}, answer))->second.second;
}

}  // namespace braid::costmodel
