#pragma once

#include <string_view>

#include "base/units.h"
#include "costmodel/shapes/data_type.h"

namespace braid::costmodel {

/// FlashAttention makes the scores of pairs of tokens again for their gradients; eager attention writes them all to
/// memory, causal halves too, kernel by kernel, and keeps their probabilities.
enum class AttentionKind { flash, eager };
std::string_view name(AttentionKind kind);
/// Throws Error that lists what is known.
AttentionKind attention_kind_of(std::string_view name);

/// NCCL's buffers of one communicator: 4 MiB (NCCL_BUFFSIZE) a channel each way, on as many channels as MuxTune §4
/// gives it thread blocks.
inline constexpr Bytes kCommunicatorBytes = 2 * 8 * (Bytes{4} << 20);

/// How an executor stores what a rank holds.
struct Storage {
  DataType weights = DataType::f32;      ///< of the layers' products; the rest is in the activations' type
  DataType activations = DataType::f32;  ///< and messages
  /// Of norms and of attention's sums, which are kept for the way back.
  DataType statistics = DataType::f32;
  /// A copy of each linear layer packed for either direction, as oneDNN wants them; else one.
  bool packed_twice = true;
  /// The layers' products are held once all the same, and widened as they are used.
  bool widens_products = false;
  /// What gradients read is kept, as PyTorch's autograd does: of a linear layer's input what its adapters need (the
  /// frozen layer needs nothing of it), and what a gate's activation left; else computed again.
  bool keeps_operator_inputs = false;
  /// A gate, its activation and the product with the other half are one kernel, which keeps its inputs alone.
  bool fused_activation = false;
  /// What adapters' dropout leaves of their inputs is never there by itself: their products drop as they read.
  bool drops_in_products = false;
  AttentionKind attention = AttentionKind::flash;
  /// The head works on all rows, whether they have a loss or not, and their logits live at once, in the activations'
  /// type and three times in f32 (cast, log-softmax, gradient); else on those with a loss, kHeadRows at a time.
  bool whole_logits = false;
  /// Of those in f32 one, in which the loss works in place, as Megatron-LM's does; its gradient is cast back beside it.
  bool loss_in_place = false;
  /// Tensors above 10 MiB take multiples of this, as PyTorch's allocator rounds them; smaller ones share its segments.
  Bytes block = 1;
  /// A head that is tied to the embedding has its table, where both are on one rank; else one of its own.
  bool shares_tied_table = false;
  Bytes communicator = 0;  ///< buffers of one, in which shards or replicas meet
  /// Weights in shares (FSDP): a gather goes on beside computing, so that two layers are there at once, and what is of
  /// no layer is in shares too; else whoever computes fetches a layer when it comes to it, and the rest is whole.
  bool gathers_beside = false;
  Bytes context = 0;       ///< runtime and libraries
  Bytes head_context = 0;  ///< of these what only a stage with the head has: its compiled products

  bool operator==(const Storage&) const = default;
};

/// braid's own executor on CPUs: f32, weights packed for either direction, unless the layers' are of another type.
inline Storage cpu_storage(DataType weights = DataType::f32) {
  Storage storage;
  storage.weights = weights;
  storage.widens_products = weights != DataType::f32;
  return storage;
}

/// braid's own executor on GPUs: activations in bf16, and what is multiplied with them too unless it is compressed; or
/// all in f32.
Storage cuda_storage(DataType weights, DataType activations = DataType::bf16);

/// PyTorch on a GPU, FlashAttention: 16-bit weights and activations; 0.4 GB beside them (MuxTune §2.2
/// gives the items and the sum of LLaMA-7B, batch 8 × 128: 13.4, 4.3 and 18.1 GB).
Storage gpu_storage(DataType type);

}  // namespace braid::costmodel
