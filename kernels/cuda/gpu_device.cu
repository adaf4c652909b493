#include <bit>
#include <cstring>
#include <deque>
#include <map>

#include <cuda.h>

#include "kernels/cuda/gpu_memory.h"
#include "kernels/cuda/gpu_state.h"
#include "kernels/cuda/table.h"

namespace braid::kernels::cuda {
namespace {

/// A function of the driver, which is not linked: programs start where there is none.
template <typename Function>
Function* driver(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  check(cudaGetDriverEntryPointByVersion(name, &found, CUDA_VERSION, cudaEnableDefault, &result));
  if (result != cudaDriverEntryPointSuccess)
    throw Failure(fmt::format("the GPU's driver has no {}; install one for CUDA 13", name));
  return reinterpret_cast<Function*>(found);
}

void check_driver(CUresult result, const char* doing) {
  if (result != CUDA_SUCCESS)
    throw Failure(fmt::format("{} failed ({}); plan for less memory, or end what else runs on the GPU (nvidia-smi)",
                              doing, static_cast<int>(result)));
}

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

/// A timed event of CUDA.
class TimedEvent {
 public:
  explicit TimedEvent(cudaStream_t stream) {
    check(cudaEventCreate(&event_));
    check(cudaEventRecord(event_, stream));
  }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;
  ~TimedEvent() { cudaEventDestroy(event_); }
  bool has_ended() const {
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) return false;
    check(status);
    return true;
  }
  double seconds_after(const TimedEvent& other) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, other.event_, event_));
    return double{milliseconds} * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaDevice;

class CudaEvent final : public Event {
 public:
  CudaEvent(CudaDevice& device, cudaStream_t stream, std::int64_t downloads)
      : device_(device), event_(std::make_shared<TimedEvent>(stream)), downloads_(downloads) {}
  std::optional<SteadyClock::time_point> ended() override;

 private:
  CudaDevice& device_;
  std::shared_ptr<TimedEvent> event_;
  std::int64_t downloads_;  // that were called before
  std::optional<SteadyClock::time_point> at_;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(int ordinal, costmodel::DataType activations)
      : ordinal_(ordinal), watch_(ordinal), ranges_(begin(ordinal)) {
    state_.emplace();
    state_->activations = activations;
    check(cudaStreamCreateWithFlags(&state_->stream, cudaStreamNonBlocking));
    check(cublasLtCreate(&state_->cublas));
    check(cudaMalloc(&state_->workspace, GpuState::kWorkspace));
    // What operators take for a moment stays with the process for the next of them.
    std::uint64_t all = UINT64_MAX;
    check(cudaMemPoolSetAttribute(pool(), cudaMemPoolAttrReleaseThreshold, &all));
    set_gpu_state(&*state_);
    zero_ = std::make_shared<TimedEvent>(state_->stream);
    check(cudaStreamSynchronize(state_->stream));
    zero_time_ = SteadyClock::now();
  }
  ~CudaDevice() override {
    cudaStreamSynchronize(state_->stream);
    cudaFree(state_->workspace);
    cublasLtDestroy(state_->cublas);
    cudaStreamDestroy(state_->stream);
    set_gpu_state(nullptr);
  }

  std::string_view name() const override { return "cuda"; }
  std::string machine() const override {
    cudaDeviceProp property{};
    check(cudaGetDeviceProperties(&property, ordinal_));
    return property.name;
  }
  const Kernels& kernels() const override { return table(); }
  costmodel::DataType activations() const override { return state_->activations; }
  std::vector<std::string> library_versions() const override {
    int driver = 0, runtime = 0;
    check(cudaDriverGetVersion(&driver));
    check(cudaRuntimeGetVersion(&runtime));
    return {fmt::format("CUDA {}.{}", runtime / 1000, runtime % 1000 / 10),
            fmt::format("driver for CUDA {}.{}", driver / 1000, driver % 1000 / 10),
            fmt::format("cuBLASLt {}", cublasLtGetVersion())};
  }

  Bytes memory() const override { return watch_.memory(); }
  Bytes held() const override { return watch_.held(); }
  Bytes most_held() const override {
    watch_.held();
    return watch_.most();
  }
  void forget_most_held() override { watch_.forget_most(); }
  void trim() override {
    wait();
    check(cudaMemPoolTrimTo(pool(), 0));
  }

  void* reserve(Bytes bytes) override { return ranges_.reserve(bytes); }
  void commit(void* first, Bytes bytes) override {
    if (ranges_.commit(first, bytes)) watch_.held();
  }
  void discard(void* first, Bytes bytes) override {
    wait();
    ranges_.discard(first, bytes);
  }
  void release(void* base, Bytes bytes) override {
    wait();
    ranges_.release(base, bytes);
  }
  bool host_memory() const override { return false; }
  void* allocate(Bytes bytes) override {
    void* memory = nullptr;
    check(cudaMalloc(&memory, static_cast<std::size_t>(bytes)));
    watch_.held();
    return memory;
  }
  void free(void* memory) override {
    wait();
    cudaFree(memory);
  }

  void upload(std::span<const std::byte> from, void* to) override {
    if (from.empty()) return;
    const void* source = from.data();
    const bool small = std::ssize(from) <= PinnedRing::kHalf;
    if (small) {
      void* pinned = state_->ring.take(std::ssize(from), state_->stream);
      std::memcpy(pinned, source, from.size());
      source = pinned;
    }
    check(cudaMemcpyAsync(to, source, from.size(), cudaMemcpyHostToDevice, state_->stream));
    if (!small) check(cudaStreamSynchronize(state_->stream));
  }
  /// By way of pinned memory, so that the host need not wait.
  void download(const void* from, std::span<std::byte> to) override {
    if (to.empty()) return;
    // Pinning takes longer than most downloads: what has served serves again.
    auto served = pinned_.lower_bound(to.size());
    if (served == pinned_.end()) {
      void* memory = nullptr;
      const std::size_t size = std::bit_ceil(to.size());
      check(cudaMallocHost(&memory, size));
      served = pinned_.emplace(size, Pinned(memory, [](void* address) { cudaFreeHost(address); }));
    }
    auto pinned = pinned_.extract(served);
    check(cudaMemcpyAsync(pinned.mapped().get(), from, to.size(), cudaMemcpyDeviceToHost, state_->stream));
    downloads_.push_back({std::move(pinned), to});
    ++downloads_called_;
  }

  std::unique_ptr<Event> record() override {
    return std::make_unique<CudaEvent>(*this, state_->stream, downloads_called_);
  }
  void wait() override {
    check(cudaStreamSynchronize(state_->stream));
    take_downloads(downloads_called_);
  }

  /// The first so many downloads have ended.
  void take_downloads(std::int64_t ended) {
    for (; downloads_taken_ < ended; ++downloads_taken_) {
      Download& first = downloads_.front();
      std::memcpy(first.to.data(), first.pinned.mapped().get(), first.to.size());
      pinned_.insert(std::move(first.pinned));
      downloads_.pop_front();
    }
  }

  /// Counted from an event that ended lately, as CUDA tells milliseconds in f32.
  SteadyClock::time_point time_of(const std::shared_ptr<TimedEvent>& event) {
    const double since = event->seconds_after(*zero_);
    const auto at =
        zero_time_ + std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(since));
    if (since > 1) {
      zero_ = event;
      zero_time_ = at;
    }
    return at;
  }

 private:
  using Pinned = std::shared_ptr<void>;
  using PinnedBySize = std::multimap<std::size_t, Pinned>;
  struct Download {
    PinnedBySize::node_type pinned;
    std::span<std::byte> to;
  };

  cudaMemPool_t pool() const {
    cudaMemPool_t pool = nullptr;
    check(cudaDeviceGetDefaultMemPool(&pool, ordinal_));
    return pool;
  }

  static int begin(int ordinal) {
    check(cudaSetDevice(ordinal));
    check(cudaFree(nullptr));  // the context
    return ordinal;
  }

  int ordinal_;
  mutable MemoryWatch watch_;
  AddressRanges ranges_;
  std::optional<GpuState> state_;
  PinnedBySize pinned_;  // that serve nobody
  std::deque<Download> downloads_;
  std::int64_t downloads_called_ = 0, downloads_taken_ = 0;
  std::shared_ptr<TimedEvent> zero_;
  SteadyClock::time_point zero_time_;
};

std::optional<SteadyClock::time_point> CudaEvent::ended() {
  if (at_ || !event_->has_ended()) return at_;
  device_.take_downloads(downloads_);
  at_ = device_.time_of(event_);
  event_.reset();
  return at_;
}

}  // namespace
}  // namespace braid::kernels::cuda

/// What kernels/cuda_device.cpp asks of the library that it loads.
extern "C" __attribute__((visibility("default"))) int braid_count_cuda_devices() {
  int count = 0;
  braid::kernels::cuda::check(cudaGetDeviceCount(&count));
  return count;
}

extern "C" __attribute__((visibility("default"))) braid::kernels::Device* braid_make_cuda_device(int ordinal,
                                                                                                 bool f32) {
  using braid::costmodel::DataType;
  return new braid::kernels::cuda::CudaDevice(ordinal, f32 ? DataType::f32 : DataType::bf16);
}
