#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <map>

#include "kernels/cuda/gpu_event.h"
#include "kernels/cuda/gpu_group.h"
#include "kernels/cuda/gpu_memory.h"
#include "kernels/cuda/gpu_ranges.h"
#include "kernels/cuda/gpu_shared_memory.h"
#include "kernels/cuda/gpu_state.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/table.h"
#include "kernels/cuda/tile_map.h"

namespace braid::kernels::cuda {
namespace {

class CudaDevice final : public Device, public EventClock {
 public:
  CudaDevice(int ordinal, Arithmetic arithmetic) : ordinal_(ordinal), watch_(ordinal), ranges_(begin(ordinal)) {
    state_.emplace(ranges_);
    state_->arithmetic = arithmetic;
    check(cudaStreamCreateWithFlags(&state_->stream, cudaStreamNonBlocking));
    check(cublasLtCreate(&state_->cublas));
    check(cudaMalloc(&state_->workspace, GpuState::kWorkspace));
    set_gpu_state(&*state_);
    zero_ = std::make_shared<TimedEvent>(events_, state_->stream);
    check(cudaStreamSynchronize(state_->stream));
    zero_time_ = SteadyClock::now();
  }
  ~CudaDevice() override {
    state_->subgraphs.drop();
    cudaStreamSynchronize(state_->stream);
    state_->attention = {};
    state_->subgraphs.forget();
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
  costmodel::DataType activations() const override { return activation_type(); }
  bool joins_products() const override { return chooses(costmodel::Operator::linear); }
  bool has_second_kernel(costmodel::Operator op) override {
    if (state_->arithmetic != Arithmetic::bf16) return false;
    return op == costmodel::Operator::launch || (op == costmodel::Operator::linear && has_warpgroups()) ||
           (op == costmodel::Operator::attention && has_graph_library() && state_->attention.works());
  }
  void choose_kernels(std::vector<costmodel::KernelChoice> choices) override {
    Device::choose_kernels(choices);
    wait();
    state_->choices = std::move(choices);
    if (chooses(costmodel::Operator::launch)) state_->subgraphs.prepare();
    // What cuDNN holds goes with what it was for.
    if (!chooses(costmodel::Operator::attention)) state_->attention = {};
  }
  std::vector<std::string> library_versions() const override {
    int driver = 0, runtime = 0;
    check(cudaDriverGetVersion(&driver));
    check(cudaRuntimeGetVersion(&runtime));
    std::vector<std::string> versions{fmt::format("CUDA {}.{}", runtime / 1000, runtime % 1000 / 10),
                                      fmt::format("driver for CUDA {}.{}", driver / 1000, driver % 1000 / 10),
                                      fmt::format("cuBLASLt {}", cublasLtGetVersion())};
    if (has_graph_library()) versions.push_back(graph_library_version());
    return versions;
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
    state_->scratch.trim();
  }

  void* reserve(Bytes bytes) override { return ranges_.reserve(bytes); }
  void commit(void* first, Bytes bytes) override {
    try {
      if (ranges_.commit(first, bytes)) watch_.held();
    } catch (const Failure&) {
      trim();  // what operators took for a moment
      if (ranges_.commit(first, bytes)) watch_.held();
    }
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
    bring(from.data(), to, std::ssize(from));
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
    state_->subgraphs.interrupt();
    check(cudaMemcpyAsync(pinned.mapped().get(), from, to.size(), cudaMemcpyDeviceToHost, state_->stream));
    downloads_.push_back({std::move(pinned), to});
    ++downloads_called_;
  }

  void copy(const void* from, void* to, Bytes bytes) override {
    if (bytes == 0) return;
    state_->subgraphs.interrupt();
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, state_->stream));
  }

  std::unique_ptr<Event> record() override {
    state_->subgraphs.interrupt();
    return std::make_unique<GpuEvent>(*this, state_->stream, downloads_called_);
  }
  std::unique_ptr<Event> mark() override {
    auto event = std::make_unique<GpuEvent>(*this, state_->stream, downloads_called_, state_->subgraphs.captured());
    state_->subgraphs.note(kMarkCall);
    return event;
  }
  void begin_subgraph(const SubgraphCall& call) override { state_->subgraphs.begin(call); }
  void end_subgraph() override { state_->subgraphs.end(); }
  void drop_subgraph() override { state_->subgraphs.drop(); }
  const std::shared_ptr<SpareEvents>& spare_events() override { return events_; }
  bool has_been_launched(std::int64_t subgraph) override { return state_->subgraphs.has_been_launched(subgraph); }

  /// With others' GPUs the stream may wait for a rank that never comes.
  void wait() override {
    state_->subgraphs.interrupt();
    if (groups_.empty()) {
      check(cudaStreamSynchronize(state_->stream));
    } else {
      wait_patiently(state_->stream, groups_);
    }
    take_downloads(downloads_called_);
  }
  void follow(const Event& event) override {
    state_->subgraphs.interrupt();
    static_cast<const GpuEvent&>(event).hold_up(state_->stream);
  }
  bool has_groups() const override { return true; }
  std::string name_group() override { return new_group_name(); }
  std::unique_ptr<DeviceGroup> join_group(const std::string& name, int size, int place) override {
    return join_nccl_group(name, size, place, *this, groups_);
  }
  std::string name_memory(void* memory) override { return cuda::name_memory(memory); }
  std::shared_ptr<const void> open_memory(const std::string& name) override { return cuda::open_memory(name); }

 private:
  void take_downloads(std::int64_t ended) override {
    for (; downloads_taken_ < ended; ++downloads_taken_) {
      Download& first = downloads_.front();
      std::memcpy(first.to.data(), first.pinned.mapped().get(), first.to.size());
      pinned_.insert(std::move(first.pinned));
      downloads_.pop_front();
    }
  }

  /// Counted from an event that ended lately, as CUDA tells milliseconds in f32.
  SteadyClock::time_point time_of(const std::shared_ptr<TimedEvent>& event) override {
    const double since = event->seconds_after(*zero_);
    const auto at =
        zero_time_ + std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(since));
    if (since > 1) {
      zero_ = event;
      zero_time_ = at;
    }
    return at;
  }

  using Pinned = std::shared_ptr<void>;
  using PinnedBySize = std::multimap<std::size_t, Pinned>;
  struct Download {
    PinnedBySize::node_type pinned;
    std::span<std::byte> to;
  };

  bool chooses(costmodel::Operator op) const {
    return std::ranges::find(state_->choices, op, &costmodel::KernelChoice::op) != state_->choices.end();
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
  LiveGroups groups_;
  PinnedBySize pinned_;  // that serve nobody
  std::deque<Download> downloads_;
  std::int64_t downloads_called_ = 0, downloads_taken_ = 0;
  const std::shared_ptr<SpareEvents> events_ = std::make_shared<SpareEvents>();
  std::shared_ptr<TimedEvent> zero_;
  SteadyClock::time_point zero_time_;
};

}  // namespace
}  // namespace braid::kernels::cuda

/// What kernels/cuda_device.cpp asks of the library that it loads.
extern "C" __attribute__((visibility("default"))) int braid_count_cuda_devices() {
  int count = 0;
  braid::kernels::cuda::check(cudaGetDeviceCount(&count));
  return count;
}

extern "C" __attribute__((visibility("default"))) braid::kernels::Device* braid_make_cuda_device(
    int ordinal, braid::kernels::Arithmetic arithmetic) {
  return new braid::kernels::cuda::CudaDevice(ordinal, arithmetic);
}
