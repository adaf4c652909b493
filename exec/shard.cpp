#include "exec/shard.h"

#include <algorithm>

#include "base/error.h"

namespace braid::exec {
namespace {

using costmodel::Module;

/// The last shares may be smaller.
Share share(std::int64_t whole, std::int64_t place, std::int64_t count) {
  const std::int64_t each = (whole + count - 1) / count;
  return {std::min(whole, place * each), std::min(whole, (place + 1) * each)};
}

/// Of key/value heads, which several ranks may share.
Share key_heads(const costmodel::BackboneShape& whole, std::int64_t place, std::int64_t count) {
  if (whole.kv_heads >= count) return share(whole.kv_heads, place, count);
  const std::int64_t head = place * whole.kv_heads / count;
  return {head, head + 1};
}

Share times(Share part, std::int64_t factor) {
  return {part.first * factor, part.last * factor};
}

}  // namespace

Shard::Shard(const costmodel::BackboneShape& whole, int place, int count)
    : whole_(whole), part_(whole), place_(place), count_(count) {
  BRAID_CHECK(0 <= place && place < count, "shard {} of {}", place, count);
  const bool even = whole.heads % count == 0 && (whole.kv_heads % count == 0 || count % whole.kv_heads == 0);
  if (!even)
    throw error("{} tensor-parallel ranks do not share the {} heads and {} key/value heads of {} evenly", count,
                whole.heads, whole.kv_heads, whole.name);
  if (whole.intermediate < count || whole.vocabulary < count)
    throw error("{} tensor-parallel ranks are more than {} has columns for", count, whole.name);
  const Share heads = share(whole.heads, place, count), keys = key_heads(whole, place, count);
  intermediate_ = share(whole.intermediate, place, count);
  vocabulary_ = share(whole.vocabulary, place, count);
  queries_ = times(heads, whole.head_dim);
  keys_ = times(keys, whole.head_dim);
  part_.heads = heads.count();
  part_.kv_heads = keys.count();
  part_.intermediate = intermediate_.count();
  part_.vocabulary = vocabulary_.count();
}

Share Shard::outputs(Module module) const {
  switch (module) {
    case Module::q:
      return queries_;
    case Module::k:
    case Module::v:
      return keys_;
    case Module::gate:
    case Module::up:
      return intermediate_;
    case Module::qkv:
      BRAID_CHECK(false, "q, k and v are shared out apart");
      break;
    case Module::o:
    case Module::down:
      break;
  }
  return {0, whole_.hidden};
}

std::vector<Share> Shard::output_runs(Module target) const {
  if (target != Module::qkv) return {outputs(target)};
  std::vector<Share> runs;
  std::int64_t before = 0;
  for (const Module module : {Module::q, Module::k, Module::v}) {
    const Share own = outputs(module);
    const Share run{before + own.first, before + own.last};
    if (!runs.empty() && runs.back().last == run.first) {
      runs.back().last = run.last;
    } else {
      runs.push_back(run);
    }
    before += costmodel::module_shape(whole_, module).out;
  }
  return runs;
}

Share Shard::inputs(Module module) const {
  if (module == Module::o) return queries_;
  if (module == Module::down) return intermediate_;
  return {0, whole_.hidden};
}

}  // namespace braid::exec
