#include "costmodel/work/stage_latency.h"

#include "base/mixed_hash.h"

namespace braid::costmodel {
namespace {

std::size_t hash_of(const StageShape& stage, const MicrobatchLoad& load, Pass pass) {
  MixedHash hash;
  hash.add(stage.layers * 4 + stage.has_embedding * 2 + stage.has_head).add(stage.tp).add(static_cast<int>(pass));
  hash.add(load.tokens);
  for (const SequenceLoad& sequence : load.sequences) hash.add(sequence.prefix * (1LL << 32) + sequence.context);
  for (const TaskRows& task : load.tasks)
    hash.add(task.tokens * (1LL << 20) + task.adapter.rank + 4099 * static_cast<int>(task.adapter.method));
  return hash.value();
}

bool alike_below_head(const MicrobatchLoad& a, const MicrobatchLoad& b) {
  return a.tokens == b.tokens && a.kernels == b.kernels && a.sequences == b.sequences && a.tasks == b.tasks;
}

}  // namespace

Estimate StageLatency::estimate(const StageShape& stage, const MicrobatchLoad& load, Pass pass) {
  // The loss and its gradient are one call of the Forward.
  const std::int64_t rows = stage.has_head && pass == Pass::forward ? head_rows(load, cost_.storage()) : 0;
  if (rows == 0) return below_head(stage, load, pass).total();
  PassWork whole = below_head(stage, load, pass);
  whole += head(stage.tp, rows);
  return whole.total();
}

const PassWork& StageLatency::below_head(const StageShape& stage, const MicrobatchLoad& load, Pass pass) {
  const std::size_t hash = hash_of(stage, load, pass);
  const auto [first, last] = known_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    const Question& asked = known->second.first;
    if (asked.pass == pass && asked.stage == stage && alike_below_head(asked.load, load)) return known->second.second;
  }
  StageShape body = stage;
  body.has_head = false;
  const PassWork work = cost_.work(stage_operators(backbone_, body, load, pass, cost_.storage()));
  return known_.emplace(hash, std::pair(Question{stage, pass, load}, work))->second.second;
}

const PassWork& StageLatency::head(std::int64_t tp, std::int64_t rows) {
  const auto [known, is_new] = heads_.try_emplace({tp, rows});
  if (is_new) {
    MicrobatchLoad load;
    load.tokens = load.scored = rows;
    std::vector<OperatorCall> calls =
        stage_operators(backbone_, {0, false, true, tp}, load, Pass::forward, cost_.storage());
    std::erase_if(calls, [](const OperatorCall& call) { return call.op != Operator::head_loss; });
    known->second = cost_.work(calls);
  }
  return known->second;
}

}  // namespace braid::costmodel
