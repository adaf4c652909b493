#pragma once

#include "costmodel/device.h"
#include "costmodel/operators.h"
#include "costmodel/stream_model.h"

namespace braid::costmodel {

/// What an operator costs on a GPU that nobody holds: products by gemm_seconds, everything else by what it reads and
/// writes, each kernel with its launch. Adapters run as Hugging Face PEFT runs them, kernel by kernel: dropout, two
/// thin products, scaling, addition. Attention runs fused (FlashAttention-2), at the share of the peak rate that its
/// paper reports. Frozen layers compute no weight gradient.
class Roofline {
 public:
  Roofline(const Device& device, DataType type) : device_(device), type_(type) {}

  const Device& device() const { return device_; }
  DataType type() const { return type_; }

  /// Time that the host needs to start the kernels of one call. It runs ahead of the GPU: a pass takes the larger of
  /// what all its kernels take there and what starting them takes here, so that small work is bound by the host.
  double host_seconds(const OperatorCall& call) const;

  /// Of one call of one kind of work on the GPU; `count` is not applied. Throws Error for messages and collectives,
  /// which need a link.
  double seconds(const OperatorCall& call) const;

 private:
  double gemm(std::int64_t rows, std::int64_t in, std::int64_t out) const;
  /// A kernel that moves `numbers_a_token` · tokens numbers of this type.
  double stream(StreamKind kind, std::int64_t tokens, std::int64_t numbers_a_token) const;
  double adapter(const OperatorCall& call) const;
  double attention(const OperatorCall& call) const;
  double head_loss(const OperatorCall& call) const;

  const Device& device_;
  DataType type_;
};

}  // namespace braid::costmodel
