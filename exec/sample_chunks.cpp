#include "exec/sample_chunks.h"

#include "base/error.h"

namespace braid::exec {

std::vector<std::vector<SequencePlace>> SampleChunks::enter(planner::MicrobatchId id, const Batch& batch) {
  std::vector<std::vector<SequencePlace>> earlier;
  for (std::size_t s = 0; s < batch.sequences.size(); ++s) {
    const SampleRows& rows = batch.sequences[s];
    Held& held = held_[rows.sample];
    BRAID_CHECK(held.tokens == rows.begin, "microbatch {} begins at token {} of a sample of which {} are under way", id,
                rows.begin, held.tokens);
    earlier.push_back(held.chunks);
    held.chunks.push_back({id, s});
    held.tokens += rows.tokens;
  }
  return earlier;
}

void SampleChunks::leave(planner::MicrobatchId id, const Batch& batch) {
  for (auto rows = batch.sequences.rbegin(); rows != batch.sequences.rend(); ++rows) {
    const auto found = held_.find(rows->sample);
    BRAID_CHECK(found != held_.end() && found->second.chunks.back().microbatch == id,
                "microbatch {} goes backward before later chunks of its samples", id);
    Held& held = found->second;
    held.chunks.pop_back();
    held.tokens -= rows->tokens;
    if (held.chunks.empty()) held_.erase(found);
  }
}

}  // namespace braid::exec
