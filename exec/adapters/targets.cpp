#include "exec/adapters/targets.h"

#include "base/random.h"

namespace braid::exec {

using costmodel::Module;

std::vector<Target> targets_of(const AdapterRows& rows) {
  const Shard& shard = rows.context.shard;
  const costmodel::AdapterShape& shape = rows.adapter.shape();
  std::vector<Target> targets;
  const auto add = [&](Module module, std::int64_t column) {
    const std::int64_t first = targets.empty() ? 0 : targets.back().last;
    Target& target = targets.emplace_back(Target{module, {}, first, first + shape.rank_of(module)});
    for (const Share own : shard.output_runs(module)) {
      target.outputs.push_back({own, column});
      column += own.count();
    }
  };
  // Modules of the product stand side by side in y, and what is several of them begins where the first does.
  std::int64_t column = 0;
  for (const Module module : costmodel::modules_of(shard.whole(), rows.group)) {
    if (shape.has(module)) add(module, column);
    column += shard.outputs(module).count();
  }
  if (rows.group == costmodel::ModuleGroup::qkv && shape.has(Module::qkv)) add(Module::qkv, 0);
  return targets;
}

Buffer dropped(const AdapterRows& rows, Module module, kernels::ConstMatrix x) {
  Buffer result = rows.context.pool.take(x.rows * x.columns);
  drop_into(rows, module, x, false, result.matrix(x.rows, x.columns));
  return result;
}

kernels::DropoutRows dropout_of(const AdapterRows& rows, Module module) {
  const auto first = static_cast<std::size_t>(rows.span.first);
  const auto count = static_cast<std::size_t>(rows.count());
  const std::uint64_t words[] = {rows.context.seeds[static_cast<std::size_t>(rows.span.task)],
                                 static_cast<std::uint64_t>(rows.span.global_batch),
                                 static_cast<std::uint64_t>(rows.layer), static_cast<std::uint64_t>(module)};
  kernels::DropoutRows drop;
  drop.positions = std::span(rows.batch.positions).subspan(first, count);
  drop.samples = std::span(rows.batch.samples).subspan(first, count);
  drop.key = mix_key(words);
  drop.first_column = rows.context.shard.inputs(module).first;
  drop.probability = static_cast<float>(rows.dropout());
  return drop;
}

void drop_into(const AdapterRows& rows, Module module, kernels::ConstMatrix x, bool accumulate, kernels::Matrix y) {
  rows.kernels().dropout(dropout_of(rows, module), x, accumulate, y);
}

}  // namespace braid::exec
