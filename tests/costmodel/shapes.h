#pragma once

#include "costmodel/work/operators.h"

/// Small shapes that the tests of this folder share.
namespace braid::costmodel {

/// Every number different, so that a swapped one shows.
inline BackboneShape small_backbone() {
  BackboneShape shape;
  shape.name = "small";
  shape.layers = 6;
  shape.hidden = 96;
  shape.intermediate = 250;
  shape.heads = 6;
  shape.kv_heads = 2;
  shape.head_dim = 20;
  shape.vocabulary = 321;
  shape.max_position = 512;
  return shape;
}

inline AdapterShape adapter(std::int64_t rank, std::initializer_list<Module> targets, double dropout = 0) {
  AdapterShape shape;
  shape.rank = rank;
  shape.alpha = 2.0 * static_cast<double>(rank);
  shape.dropout = dropout;
  for (const Module module : targets) shape.targets[static_cast<std::size_t>(module)] = true;
  return shape;
}

inline AdapterShape adapter_on_all(std::int64_t rank) {
  AdapterShape shape = adapter(rank, {});
  shape.targets = costmodel::kSeparateModules;
  return shape;
}

/// Whole sequences of one task, all tokens but each sequence's last with a loss.
inline MicrobatchLoad load_of(const AdapterShape& shape, std::initializer_list<std::int64_t> lengths) {
  MicrobatchLoad load;
  for (const std::int64_t length : lengths) {
    load.tokens += length;
    load.scored += length - 1;
    load.sequences.push_back({0, length});
  }
  load.tasks = {{shape, load.tokens}};
  return load;
}

/// Both side by side in one microbatch.
inline MicrobatchLoad together(MicrobatchLoad a, const MicrobatchLoad& b) {
  a.tokens += b.tokens;
  a.scored += b.scored;
  a.sequences.insert(a.sequences.end(), b.sequences.begin(), b.sequences.end());
  a.tasks.insert(a.tasks.end(), b.tasks.begin(), b.tasks.end());
  return a;
}

}  // namespace braid::costmodel
