#include <cstring>
#include <source_location>
#include <thread>

#include <dlfcn.h>
#include <fmt/format.h>
#include <nccl.h>

#include "base/error.h"
#include "kernels/cuda/gpu_group.h"

namespace braid::kernels::cuda {
namespace {

/// Of MuxTune §4: collectives on so many thread blocks leave the GPU's others to what is computed beside them.
constexpr int kMostBlocks = 8;

/// What is called of NCCL.
struct Nccl {
  decltype(ncclGetUniqueId)* get_unique_id;
  decltype(ncclCommInitRankConfig)* init_rank;
  decltype(ncclCommDestroy)* destroy;
  decltype(ncclCommAbort)* abort;
  decltype(ncclCommGetAsyncError)* get_error;
  decltype(ncclGetErrorString)* error_string;
  decltype(ncclAllReduce)* all_reduce;
  decltype(ncclSend)* send;
  decltype(ncclRecv)* receive;
};

Nccl load() {
  void* library = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Failure(fmt::format("plans of several GPUs need NCCL 2 ({}); install libnccl2, or set LD_LIBRARY_PATH to it",
                              ::dlerror()));
  const auto find = [&]<typename Function>(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(library, name));
    if (!function)
      throw Failure(fmt::format("libnccl.so.2 has no {}; install NCCL {}.{} or later", name, NCCL_MAJOR, 18));
  };
  Nccl nccl{};
  find(nccl.get_unique_id, "ncclGetUniqueId");
  find(nccl.init_rank, "ncclCommInitRankConfig");
  find(nccl.destroy, "ncclCommDestroy");
  find(nccl.abort, "ncclCommAbort");
  find(nccl.get_error, "ncclCommGetAsyncError");
  find(nccl.error_string, "ncclGetErrorString");
  find(nccl.all_reduce, "ncclAllReduce");
  find(nccl.send, "ncclSend");
  find(nccl.receive, "ncclRecv");
  return nccl;
}

const Nccl& nccl() {
  static const Nccl loaded = load();
  return loaded;
}

void check(ncclResult_t status, std::source_location where = std::source_location::current()) {
  if (status == ncclSuccess || status == ncclInProgress) return;
  throw Failure(fmt::format(
      "kernels/cuda/gpu_group.cu:{}: NCCL says {}; run again with NCCL_DEBUG=WARN to see which rank or link it means",
      where.line(), nccl().error_string(status)));
}

}  // namespace

class NcclGroup final : public DeviceGroup {
 public:
  NcclGroup(const std::string& name, int size, int place, EventClock& clock, LiveGroups& live)
      : clock_(clock), live_(live) {
    ncclUniqueId id;
    BRAID_CHECK(name.size() == sizeof id, "a name of {} bytes for a group", name.size());
    std::memcpy(&id, name.data(), sizeof id);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = kMostBlocks;
    check(nccl().init_rank(&communicator_, size, id, place, &config));
    // What others wait for goes before what is computed.
    int least = 0, greatest = 0;
    cuda::check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    cuda::check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest));
    live_.insert(this);
  }
  ~NcclGroup() override {
    live_.erase(this);
    if (std::uncaught_exceptions() > 0) {
      nccl().abort(communicator_);  // the others may never come
    } else {
      cudaStreamSynchronize(stream_);
      nccl().destroy(communicator_);
    }
    cudaStreamDestroy(stream_);
  }

  std::unique_ptr<Event> all_reduce(void* numbers, std::int64_t count, costmodel::DataType type,
                                    const Event& after) override {
    hold_up(after);
    check(nccl().all_reduce(numbers, numbers, static_cast<std::size_t>(count),
                            type == costmodel::DataType::bf16 ? ncclBfloat16 : ncclFloat32, ncclSum, communicator_,
                            stream_));
    return ended();
  }
  std::unique_ptr<Event> send(const void* numbers, Bytes bytes, int to, const Event& after) override {
    hold_up(after);
    check(nccl().send(numbers, static_cast<std::size_t>(bytes), ncclInt8, to, communicator_, stream_));
    return ended();
  }
  std::unique_ptr<Event> receive(void* numbers, Bytes bytes, int from, const Event& after) override {
    hold_up(after);
    check(nccl().receive(numbers, static_cast<std::size_t>(bytes), ncclInt8, from, communicator_, stream_));
    return ended();
  }

  void check_others() const {
    ncclResult_t error = ncclSuccess;
    check(nccl().get_error(communicator_, &error));
    check(error);
  }

 private:
  void hold_up(const Event& after) const { static_cast<const GpuEvent&>(after).hold_up(stream_); }
  std::unique_ptr<Event> ended() { return std::make_unique<GpuEvent>(clock_, stream_); }

  EventClock& clock_;
  LiveGroups& live_;
  ncclComm_t communicator_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

std::string new_group_name() {
  ncclUniqueId id;
  check(nccl().get_unique_id(&id));
  return {reinterpret_cast<const char*>(&id), sizeof id};
}

std::unique_ptr<DeviceGroup> join_nccl_group(const std::string& name, int size, int place, EventClock& clock,
                                             LiveGroups& live) {
  return std::make_unique<NcclGroup>(name, size, place, clock, live);
}

void wait_patiently(cudaStream_t stream, const LiveGroups& groups) {
  constexpr double kPatience = 600, kBetweenLooks = 0.1;  // seconds
  const SteadyClock::time_point began = SteadyClock::now();
  SteadyClock::time_point looked = began;
  for (;;) {
    const cudaError_t status = cudaStreamQuery(stream);
    if (status != cudaErrorNotReady) return cuda::check(status);
    if (seconds_since(looked) < kBetweenLooks) continue;
    looked = SteadyClock::now();
    for (const NcclGroup* group : groups) group->check_others();
    if (seconds_since(began) > kPatience)
      throw Failure(
          fmt::format("the GPU has waited {:.0f} s for others: a rank has stopped or hangs; look at all ranks' GPUs "
                      "with nvidia-smi",
                      kPatience));
  }
}

}  // namespace braid::kernels::cuda
