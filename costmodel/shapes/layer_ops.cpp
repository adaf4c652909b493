#include "costmodel/shapes/layer_ops.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace braid::costmodel {
namespace {

constexpr LayerOp norm(Slot from, Slot to) {
  return {LayerWork::norm, from, to};
}
constexpr LayerOp linear(ModuleGroup group, Slot from, Slot to, bool kept) {
  return {.work = LayerWork::linear, .from = from, .to = to, .group = group, .kept = kept};
}
constexpr LayerOp in_place(LayerWork work) {
  return {.work = work, .from = Slot::qkv, .to = Slot::qkv, .kept = true};
}
constexpr LayerOp residual(Slot from, Slot also, Slot to, bool kept) {
  return {.work = LayerWork::residual, .from = from, .to = to, .also = also, .kept = kept};
}

constexpr LayerOp kAttentionNorm = norm(Slot::input, Slot::attention_input);
constexpr LayerOp kQkv = linear(ModuleGroup::qkv, Slot::attention_input, Slot::qkv, true);
constexpr LayerOp kHeadNorm = in_place(LayerWork::head_norm);
constexpr LayerOp kRope = in_place(LayerWork::rope);
constexpr LayerOp kAttention = {.work = LayerWork::attention, .from = Slot::qkv, .to = Slot::attended, .kept = true};
constexpr LayerOp kO = linear(ModuleGroup::o, Slot::attended, Slot::attention_output, false);
constexpr LayerOp kMiddle = residual(Slot::attention_output, Slot::input, Slot::middle, true);
constexpr LayerOp kFeedForwardNorm = norm(Slot::middle, Slot::feed_forward_input);
constexpr LayerOp kUp = linear(ModuleGroup::gate_up, Slot::feed_forward_input, Slot::up, true);
constexpr LayerOp kActivation = {.work = LayerWork::activation, .from = Slot::up, .to = Slot::activated};
constexpr LayerOp kDown = linear(ModuleGroup::down, Slot::activated, Slot::feed_forward_output, false);
constexpr LayerOp kOutput = residual(Slot::feed_forward_output, Slot::middle, Slot::output, false);

/// Learned positions: GPT-2, OPT.
constexpr std::array kPlain = {kAttentionNorm,   kQkv, kAttention,  kO,    kMiddle,
                               kFeedForwardNorm, kUp,  kActivation, kDown, kOutput};
/// Llama, Mistral, Qwen2.5.
constexpr std::array kRotary = {kAttentionNorm,   kQkv, kRope,       kAttention, kO,     kMiddle,
                                kFeedForwardNorm, kUp,  kActivation, kDown,      kOutput};
/// Qwen3.
constexpr std::array kHeadNormed = {kAttentionNorm,   kQkv, kHeadNorm,   kRope, kAttention, kO, kMiddle,
                                    kFeedForwardNorm, kUp,  kActivation, kDown, kOutput};

}  // namespace

std::int64_t width(const BackboneShape& shard, Slot slot) {
  switch (slot) {
    case Slot::qkv:
      return shard.qkv_width();
    case Slot::attended:
      return shard.query_width();
    case Slot::up:
      return shard.up_width();
    case Slot::activated:
      return shard.intermediate;
    case Slot::input:
    case Slot::attention_input:
    case Slot::attention_output:
    case Slot::middle:
    case Slot::feed_forward_input:
    case Slot::feed_forward_output:
    case Slot::output:
      break;
  }
  return shard.hidden;
}

std::span<const LayerOp> layer_ops(const BackboneShape& backbone) {
  if (backbone.qk_norm) return kHeadNormed;
  if (backbone.rotary()) return kRotary;
  return kPlain;
}

const LayerOp& writer_of(std::span<const LayerOp> ops, Slot slot) {
  const auto writer = std::find_if(ops.begin(), ops.end(), [&](const LayerOp& op) { return op.to == slot; });
  BRAID_CHECK(writer != ops.end(), "no operator writes slot {}", static_cast<int>(slot));
  return *writer;
}

}  // namespace braid::costmodel
