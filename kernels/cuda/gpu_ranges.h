#pragma once

#include <map>

#include "base/units.h"
#include "kernels/cuda/gpu_driver.h"

namespace braid::kernels::cuda {

/// Ranges of addresses whose memory comes chunk by chunk, as parts of them are committed.
class AddressRanges {
 public:
  explicit AddressRanges(int ordinal) {
    property_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    property_.location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal};
    check_driver(driver<decltype(cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity")(
                     &chunk_, &property_, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                 "asking the GPU for the size of its pages");
  }

  /// Bytes that memory comes in.
  Bytes chunk() const { return static_cast<Bytes>(chunk_); }

  void* reserve(Bytes bytes) {
    CUdeviceptr base = 0;
    const CUresult result =
        driver<decltype(cuMemAddressReserve)>("cuMemAddressReserve")(&base, chunks_of(bytes) * chunk_, 0, 0, 0);
    return result == CUDA_SUCCESS ? reinterpret_cast<void*>(base) : nullptr;
  }

  /// Whether any was taken of the GPU.
  bool commit(void* first, Bytes bytes) {
    bool taken = false;
    const auto begin = reinterpret_cast<CUdeviceptr>(first);
    const CUdeviceptr last = begin + static_cast<CUdeviceptr>(bytes);
    for (CUdeviceptr chunk = begin / chunk_ * chunk_; chunk < last; chunk += chunk_) {
      if (mapped_.contains(chunk)) continue;
      CUmemGenericAllocationHandle handle = 0;
      check_driver(driver<decltype(cuMemCreate)>("cuMemCreate")(&handle, chunk_, &property_, 0),
                   "taking memory of the GPU");
      check_driver(driver<decltype(cuMemMap)>("cuMemMap")(chunk, chunk_, 0, handle, 0), "mapping memory of the GPU");
      const CUmemAccessDesc access{property_.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
      check_driver(driver<decltype(cuMemSetAccess)>("cuMemSetAccess")(chunk, chunk_, &access, 1),
                   "mapping memory of the GPU");
      mapped_[chunk] = handle;
      taken = true;
    }
    return taken;
  }

  /// Of chunks that lie within it as a whole.
  void discard(void* first, Bytes bytes) {
    const auto begin = reinterpret_cast<CUdeviceptr>(first);
    const CUdeviceptr last = begin + static_cast<CUdeviceptr>(bytes);
    for (auto chunk = mapped_.lower_bound(begin); chunk != mapped_.end() && chunk->first + chunk_ <= last;) {
      driver<decltype(cuMemUnmap)>("cuMemUnmap")(chunk->first, chunk_);
      driver<decltype(cuMemRelease)>("cuMemRelease")(chunk->second);
      chunk = mapped_.erase(chunk);
    }
  }

  void release(void* base, Bytes bytes) {
    const std::size_t size = chunks_of(bytes) * chunk_;
    discard(base, static_cast<Bytes>(size));
    driver<decltype(cuMemAddressFree)>("cuMemAddressFree")(reinterpret_cast<CUdeviceptr>(base), size);
  }

 private:
  std::size_t chunks_of(Bytes bytes) const { return (static_cast<std::size_t>(bytes) + chunk_ - 1) / chunk_; }

  CUmemAllocationProp property_{};
  std::size_t chunk_ = 0;
  std::map<CUdeviceptr, CUmemGenericAllocationHandle> mapped_;
};

}  // namespace braid::kernels::cuda
