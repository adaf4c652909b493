#pragma once

#include <map>
#include <vector>

#include "base/units.h"
#include "kernels/cuda/gpu_driver.h"

namespace braid::kernels::cuda {

/// Ranges of addresses whose memory comes chunk by chunk, as parts of them are committed.
class AddressRanges {
 public:
  explicit AddressRanges(int ordinal) {
    property_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    property_.location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal};
    // Looked up once: who gives memory back must not fail.
    find(reserve_, "cuMemAddressReserve"), find(free_, "cuMemAddressFree");
    find(create_, "cuMemCreate"), find(release_, "cuMemRelease");
    find(map_, "cuMemMap"), find(unmap_, "cuMemUnmap"), find(set_access_, "cuMemSetAccess");
    check_driver(driver<decltype(cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity")(
                     &chunk_, &property_, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                 "asking the GPU for the size of its pages");
  }

  /// Bytes that memory comes in.
  Bytes chunk() const { return static_cast<Bytes>(chunk_); }

  void* reserve(Bytes bytes) {
    CUdeviceptr base = 0;
    const CUresult result = reserve_(&base, chunks_of(bytes) * chunk_, 0, 0, 0);
    return result == CUDA_SUCCESS ? reinterpret_cast<void*>(base) : nullptr;
  }

  /// Whether any was taken of the GPU. Where it has not got all, none stays taken.
  bool commit(void* first, Bytes bytes) {
    std::vector<CUdeviceptr> taken;
    const auto begin = reinterpret_cast<CUdeviceptr>(first);
    const CUdeviceptr last = begin + static_cast<CUdeviceptr>(bytes);
    try {
      for (CUdeviceptr chunk = begin / chunk_ * chunk_; chunk < last; chunk += chunk_) {
        if (mapped_.contains(chunk)) continue;
        take(chunk);
        taken.push_back(chunk);
      }
    } catch (const Failure&) {
      for (const CUdeviceptr chunk : taken) give_back(mapped_.find(chunk));
      throw;
    }
    return !taken.empty();
  }

  /// Of chunks that lie within it as a whole.
  void discard(void* first, Bytes bytes) {
    const auto begin = reinterpret_cast<CUdeviceptr>(first);
    const CUdeviceptr last = begin + static_cast<CUdeviceptr>(bytes);
    for (auto chunk = mapped_.lower_bound(begin); chunk != mapped_.end() && chunk->first + chunk_ <= last;) {
      chunk = give_back(chunk);
    }
  }

  void release(void* base, Bytes bytes) {
    const std::size_t size = chunks_of(bytes) * chunk_;
    discard(base, static_cast<Bytes>(size));
    free_(reinterpret_cast<CUdeviceptr>(base), size);
  }

 private:
  using Mapped = std::map<CUdeviceptr, CUmemGenericAllocationHandle>;

  template <typename Function>
  static void find(Function*& function, const char* name) {
    function = driver<Function>(name);
  }

  void take(CUdeviceptr chunk) {
    CUmemGenericAllocationHandle handle = 0;
    check_driver(create_(&handle, chunk_, &property_, 0), "taking memory of the GPU");
    CUresult result = map_(chunk, chunk_, 0, handle, 0);
    if (result == CUDA_SUCCESS) {
      const CUmemAccessDesc access{property_.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
      result = set_access_(chunk, chunk_, &access, 1);
      if (result != CUDA_SUCCESS) unmap_(chunk, chunk_);
    }
    if (result != CUDA_SUCCESS) release_(handle);
    check_driver(result, "mapping memory of the GPU");
    mapped_[chunk] = handle;
  }
  Mapped::iterator give_back(Mapped::iterator chunk) {
    unmap_(chunk->first, chunk_);
    release_(chunk->second);
    return mapped_.erase(chunk);
  }

  std::size_t chunks_of(Bytes bytes) const { return (static_cast<std::size_t>(bytes) + chunk_ - 1) / chunk_; }

  CUmemAllocationProp property_{};
  std::size_t chunk_ = 0;
  Mapped mapped_;
  decltype(cuMemAddressReserve)* reserve_ = nullptr;
  decltype(cuMemAddressFree)* free_ = nullptr;
  decltype(cuMemCreate)* create_ = nullptr;
  decltype(cuMemRelease)* release_ = nullptr;
  decltype(cuMemMap)* map_ = nullptr;
  decltype(cuMemUnmap)* unmap_ = nullptr;
  decltype(cuMemSetAccess)* set_access_ = nullptr;
};

}  // namespace braid::kernels::cuda
