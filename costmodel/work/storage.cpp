#include "costmodel/work/storage.h"

#include "base/error.h"
#include "base/named.h"

namespace braid::costmodel {
namespace {

constexpr AttentionKind kAttentionKinds[] = {AttentionKind::flash, AttentionKind::eager};

}  // namespace

std::string_view name(AttentionKind kind) {
  return kind == AttentionKind::flash ? "flash" : "eager";
}

AttentionKind attention_kind_of(std::string_view name) {
  if (const auto kind = value_named(name, kAttentionKinds)) return *kind;
  throw error("unknown attention '{}'; known: {}", name, names_of(kAttentionKinds));
}

Storage cuda_storage(DataType weights, DataType activations) {
  Storage storage;
  storage.weights = weights == DataType::f32 ? activations : weights;
  storage.activations = activations;
  storage.packed_twice = false;
  storage.drops_in_products = true;
  return storage;
}

Storage gpu_storage(DataType type) {
  Storage storage;
  storage.weights = type;
  storage.activations = activation_type(type);
  storage.statistics = storage.activations;
  storage.packed_twice = false;
  storage.shares_tied_table = true;
  storage.keeps_operator_inputs = true;
  storage.whole_logits = true;
  storage.block = Bytes{2} << 20;
  storage.gathers_beside = true;
  storage.communicator = kCommunicatorBytes;
  storage.context = 400'000'000;
  return storage;
}

}  // namespace braid::costmodel
