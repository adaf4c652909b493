#pragma once

#include <initializer_list>

#include "costmodel/shapes/adapter.h"
#include "costmodel/work/operators.h"

// Adapters and microbatches as the papers have them.
namespace braid::costmodel::studies {

inline constexpr std::initializer_list<Module> kAttentionModules = {Module::q, Module::k, Module::v, Module::o};

inline AdapterShape paper_lora(std::int64_t rank, std::initializer_list<Module> targets, double dropout) {
  AdapterShape shape;
  shape.rank = rank;
  shape.alpha = 2.0 * static_cast<double>(rank);
  shape.dropout = dropout;
  for (const Module module : targets) shape.targets[static_cast<std::size_t>(module)] = true;
  return shape;
}

/// `tasks` tasks, each with `sequences` sequences of `length` tokens.
inline MicrobatchLoad paper_load(const AdapterShape& adapter, std::int64_t tasks, std::int64_t sequences,
                                 std::int64_t length) {
  MicrobatchLoad load;
  load.tokens = load.scored = tasks * sequences * length;
  load.sequences.assign(static_cast<std::size_t>(tasks * sequences), {0, length});
  load.tasks.assign(static_cast<std::size_t>(tasks), {adapter, sequences * length});
  return load;
}

}  // namespace braid::costmodel::studies
