#pragma once

#include <cublasLt.h>

#include "kernels/cuda/errors.h"
#include "kernels/cuda/gpu_scratch.h"
#include "kernels/cuda/gpu_subgraphs.h"
#include "kernels/cuda/library_attention.h"
#include "kernels/device.h"

namespace braid::kernels::cuda {

void check(cublasStatus_t status, std::source_location where = std::source_location::current());

/// Host memory that the GPU reads by itself, lent in turns: for the small tables that go along with operators.
class PinnedRing {
 public:
  PinnedRing();
  PinnedRing(const PinnedRing&) = delete;
  PinnedRing& operator=(const PinnedRing&) = delete;
  ~PinnedRing();
  static constexpr std::int64_t kHalf = std::int64_t{4} << 20;
  /// At most kHalf bytes, to be read by what is put into the stream before the next call. May wait for the stream, and
  /// puts an event into it, where it turns.
  void* take(std::int64_t bytes, cudaStream_t stream);
  bool turns(std::int64_t bytes) const { return used_ + bytes > kHalf; }
  /// The half before this one is read by what has been put into the stream until now, too.
  void mark_left(cudaStream_t stream);

 private:
  char* memory_ = nullptr;
  cudaEvent_t left_[2] = {};  // when all that reads a half had been put into the stream
  std::int64_t used_ = 0;
  int half_ = 0;
};

/// What a thread's GPU works with.
struct GpuState {
  explicit GpuState(AddressRanges& ranges) : scratch(ranges), subgraphs(*this) {}
  cudaStream_t stream = nullptr;
  cublasLtHandle_t cublas = nullptr;
  void* workspace = nullptr;
  static constexpr std::size_t kWorkspace = std::size_t{64} << 20;
  Arithmetic arithmetic = Arithmetic::bf16;
  std::vector<costmodel::KernelChoice> choices;
  LibraryAttention attention;
  PinnedRing ring;
  ScratchMemory scratch;
  Subgraphs subgraphs;

  /// At most PinnedRing::kHalf bytes, to be read by what is put into the stream, or captured, before the next call.
  void* pinned(std::int64_t bytes) {
    // The GPU cannot be waited for within a graph.
    if (ring.turns(bytes)) subgraphs.interrupt();
    return ring.take(bytes, stream);
  }
  void wait() {
    subgraphs.interrupt();
    check(cudaStreamSynchronize(stream));
  }
};

/// What graphs know calls by that are no kernels of braid's.
constexpr std::uint64_t kCopyCall = 1, kMarkCall = 2, kProductCall = 3, kLibraryGraphCall = 4;

/// Of the thread's device, which must be there.
GpuState& gpu_state();
/// Copies from the host, which is read before this returns, in the compute stream.
void bring(const void* host, void* to, std::int64_t bytes);
/// The thread's device is that one from now on, or none.
void set_gpu_state(GpuState* state);

}  // namespace braid::kernels::cuda
