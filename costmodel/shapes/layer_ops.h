#pragma once

#include <cstdint>
#include <span>

#include "costmodel/shapes/adapter.h"

/// A decoder layer, written down once. The work it is charged for (work/operators), what a microbatch leaves in it
/// (work/memory), the graph of its operators (planner/latency/operator_graph) and its execution (exec/decoder_layer)
/// all walk this list: forward from its first operator, backward from its last.
namespace braid::costmodel {

/// What a layer makes of its T tokens on their way. Each is written by one operator, save `qkv`, which head norms and
/// the rotation change in place.
enum class Slot : std::int8_t {
  input,                ///< [T, H], the hidden state
  attention_input,      ///< [T, H], normed
  qkv,                  ///< [T, (Hq + 2 Hkv) · D]: queries, keys and values side by side
  attended,             ///< [T, Hq · D]
  attention_output,     ///< [T, H]
  middle,               ///< [T, H], the hidden state after attention
  feed_forward_input,   ///< [T, H], normed
  up,                   ///< [T, 2F] gate and up side by side, or [T, F]
  activated,            ///< [T, F]
  feed_forward_output,  ///< [T, H]
  output                ///< [T, H], the next layer's input
};
inline constexpr int kSlotCount = 11;

/// Numbers that a token has there, on a shard of the backbone or on the whole of it.
std::int64_t width(const BackboneShape& shard, Slot slot);

enum class LayerWork : std::int8_t { norm, linear, head_norm, rope, attention, activation, residual };

struct LayerOp {
  LayerWork work = LayerWork::norm;
  Slot from = Slot::input;
  Slot to = Slot::input;
  Slot also = Slot::input;               ///< residual: the hidden state that `from` is added to
  ModuleGroup group = ModuleGroup::qkv;  ///< linear: which frozen product, and so which adapters stand beside it
  /// `to` stays for the way back. Otherwise it is computed again from `from`, where an adapter reads it.
  bool kept = false;
};

/// The operators of a layer of that backbone in the order of its forward pass. The last writes Slot::output.
std::span<const LayerOp> layer_ops(const BackboneShape& backbone);

/// The operator that writes the slot first; Slot::input has none.
const LayerOp& writer_of(std::span<const LayerOp> ops, Slot slot);

/// Whether selective recomputation drops that work's result: attention's, and what the feed-forward makes between its
/// products (Korthikanti et al. 2022).
constexpr bool recomputed_selectively(LayerWork work) {
  return work == LayerWork::attention || work == LayerWork::activation;
}

}  // namespace braid::costmodel
