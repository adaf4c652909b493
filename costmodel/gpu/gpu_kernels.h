#pragma once

#include <boost/container/static_vector.hpp>

#include "costmodel/gpu/gemm_model.h"
#include "costmodel/gpu/stream_model.h"
#include "costmodel/work/operators.h"
#include "costmodel/work/storage.h"

namespace braid::costmodel {

/// One launch on a GPU: a matrix product, a kernel that moves numbers, FlashAttention, or small products of every head
/// and sequence.
struct GpuKernel {
  enum class Kind { product, stream, attention, batched };
  Kind kind = Kind::stream;
  GemmShape product;                    ///< product
  StreamKind stream = StreamKind::add;  ///< stream
  double flops = 0;                     ///< attention, batched
  double bytes = 0;                     ///< read and written, each number once
  double count = 1;
};

/// The launches of one call, without allocating.
using GpuKernels = boost::container::static_vector<GpuKernel, 16>;

/// What a GPU runs for one call (`count` not applied). Operators run as PyTorch runs them; the gradient that a norm
/// sends down is added to the one that went past it in a kernel of its own. Adapters kernel by kernel, as Hugging Face
/// PEFT runs them: dropout, two thin products, scaling, addition; going back scaling, the gradients of B, of the
/// low-rank product and of A, and towards the input a product, the mask and an addition. Fused adapters as LoRAFusion
/// does (§5.1): dropout with the product by A, in one read of X; the product by B as r more rows of depth in the frozen
/// layer's, so that Y is written once; going back the gradients of B and of the low-rank product in one read of dY,
/// that of A, and r more rows of depth again, whose reading of the masks is hidden. They run once a module, which has a
/// mask of its own. Attention as FlashAttention-2, or eager as Hugging Face runs it: scores, their scale, the mask, a
/// softmax in f32 with casts, and the product by values; the way back less the mask, the softmax's in two kernels. None
/// for messages and collectives.
GpuKernels gpu_kernels(const OperatorCall& call, DataType type, AttentionKind attention = AttentionKind::flash);

}  // namespace braid::costmodel
