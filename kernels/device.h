#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/steady_clock.h"
#include "base/units.h"
#include "costmodel/profile/kernel_choice.h"
#include "kernels/kernels.h"

namespace braid::kernels {

/// A point of a device's compute stream.
class Event {
 public:
  virtual ~Event() = default;
  /// When all that was called on the device before the point had ended; nothing as long as it has not. Asking lets the
  /// device go on.
  virtual std::optional<SteadyClock::time_point> ended() = 0;
};

/// Some ranks' devices, which tell each other numbers of their memory in a stream of the group's own, beside the
/// compute stream. What is called goes in the order of the calls, each after `after`; members call alike.
class DeviceGroup {
 public:
  virtual ~DeviceGroup() = default;
  /// Sums over the group in place, of f32 or bf16.
  virtual std::unique_ptr<Event> all_reduce(void* numbers, std::int64_t count, costmodel::DataType type,
                                            const Event& after) = 0;
  /// `to` and `from` are places in the group.
  virtual std::unique_ptr<Event> send(const void* numbers, Bytes bytes, int to, const Event& after) = 0;
  virtual std::unique_ptr<Event> receive(void* numbers, Bytes bytes, int from, const Event& after) = 0;
};

/// What a layer's pass calls between two sums over shards (MuxTune §3.4.2): once more and again, on other numbers.
struct SubgraphCall {
  costmodel::Pass pass = costmodel::Pass::forward;
  std::int64_t tokens = 0;  ///< of the microbatch
  /// The same for those that call the same operators for the same tasks.
  std::size_t kind = 0;
};

/// Where a rank computes: its memory, the stream that its operators run in, and events by which the host and others
/// wait for it. Whoever executes a plan is given one and names none.
///
/// Operators and copies run in the order of their calls, at the latest when somebody waits (see Kernels). Messages and
/// collectives go beside them: by groups of devices, or by the host, which waits for an event first. One thread at a
/// time.
class Device {
 public:
  virtual ~Device() = default;
  /// "cpu", "reference"
  virtual std::string_view name() const = 0;
  /// The processor's name, or the GPU's.
  virtual std::string machine() const = 0;
  virtual const Kernels& kernels() const = 0;
  /// Whether products drop numbers of their matrices as they read and write them (MatmulCall::dropped), so that what is
  /// dropped need not be written out before.
  virtual bool drops_in_products() const { return true; }
  /// Whether what adapters add to a frozen product's result is worth handing to that product
  /// (FrozenLinear::forward_joined). Such a device drops in products.
  virtual bool joins_products() const { return false; }
  /// Whether there is a second kernel for the operator, which computes what choose_kernels says: at first nothing. May
  /// compile one to see.
  virtual bool has_second_kernel(costmodel::Operator) { return false; }
  /// In place of what was chosen before. Throws Error for what it has no second kernel for.
  virtual void choose_kernels(std::vector<costmodel::KernelChoice> choices);
  /// What activations and their gradients are; weights, adapters, statistics and sums are f32 in any case, or as a
  /// FrozenLinear holds them.
  virtual costmodel::DataType activations() const { return costmodel::DataType::f32; }
  /// The libraries that its times depend on, "oneDNN 2.6.3" and so on.
  virtual std::vector<std::string> library_versions() const = 0;

  /// Bytes of memory that it has in all.
  virtual Bytes memory() const = 0;
  /// Bytes of it that this process holds, libraries and all; and the most that it held since `forget_most_held`. On a
  /// processor that is resident memory.
  virtual Bytes held() const = 0;
  virtual Bytes most_held() const = 0;
  virtual void forget_most_held() = 0;
  /// Gives back what allocators keep for later calls.
  virtual void trim() = 0;

  /// A range of addresses, aligned to pages; memory is taken page by page as it is touched. Null where the system
  /// grants fewer bytes.
  virtual void* reserve(Bytes bytes) = 0;
  /// A part of a range is about to be touched. Throws Failure where the device has no memory left.
  virtual void commit(void* /*first*/, Bytes /*bytes*/) {}
  /// Gives the pages of a part of a range back, once all that was called before has ended; what is touched again is
  /// fresh. `first` and `bytes` are of whole pages.
  virtual void discard(void* first, Bytes bytes) = 0;
  virtual void release(void* base, Bytes bytes) = 0;
  static constexpr Bytes kPage = 4096;

  /// Whether what the host writes is there for operators, and the other way about once an event has ended.
  virtual bool host_memory() const = 0;
  /// Memory of its own, aligned to 64 bytes. Throws std::bad_alloc. `free` waits for whatever uses it.
  virtual void* allocate(Bytes bytes) = 0;
  virtual void free(void* memory) = 0;
  /// Copies from the host, which is read before the call returns.
  virtual void upload(std::span<const std::byte> from, void* to) = 0;
  /// Copies to the host, when all that was called before has ended: `to` must stay until an event recorded afterwards.
  virtual void download(const void* from, std::span<std::byte> to) = 0;
  /// Copies within its memory, or from what it opened of another device's, in the order of the calls.
  virtual void copy(const void* from, void* to, Bytes bytes) = 0;

  virtual std::unique_ptr<Event> record() = 0;
  /// To tell by when both have ended how long what was called between two of them took, and for nothing else: nobody
  /// may wait for it.
  virtual std::unique_ptr<Event> mark() { return record(); }
  /// Until all that was called has ended.
  virtual void wait() = 0;
  /// What is called from here on runs after that event, which is of a group of this device.
  virtual void follow(const Event& /*event*/) {}

  /// What is called between the two is a subgraph, which the device may begin when it ends, as one launch. Nobody needs
  /// to know: who waits, or records an event, has what was called until then begin at once. Of what is dropped in place
  /// of being ended, as a call has failed, nothing may run, whatever callers believe was computed by it. Calls without
  /// a subgraph under way do nothing.
  virtual void begin_subgraph(const SubgraphCall& /*call*/) {}
  virtual void end_subgraph() {}
  virtual void drop_subgraph() {}

  /// Whether there are groups of such devices; else the host tells others what is in its memory.
  virtual bool has_groups() const { return false; }
  /// For join_group: what no other group is called.
  virtual std::string name_group() { return {}; }
  /// Returns when all `size` members have joined, each as another `place`.
  virtual std::unique_ptr<DeviceGroup> join_group(const std::string& /*name*/, int /*size*/, int /*place*/) {
    return nullptr;
  }
  /// What others on this host open memory by that `allocate` gave; and that memory of another's, to be read until it
  /// goes. Of devices that have groups. Throws Failure where this device cannot reach the other's memory.
  virtual std::string name_memory(void* /*memory*/) { return {}; }
  virtual std::shared_ptr<const void> open_memory(const std::string& /*name*/) { return nullptr; }
};

/// Calls `work` as a subgraph, and gives what it gives.
template <typename Work>
auto as_subgraph(Device& device, const SubgraphCall& call, const Work& work) {
  device.begin_subgraph(call);
  try {
    auto result = work();
    device.end_subgraph();
    return result;
  } catch (...) {
    device.drop_subgraph();
    throw;
  }
}

/// This machine's processor, by kernels that are fast on it.
std::unique_ptr<Device> make_cpu_device();

/// The same, by kernels written to be read: what any other device is held against, operator by operator or on whole
/// models. Single-threaded, and slow.
std::unique_ptr<Device> make_reference_device();

/// Whether the build has CUDA: the library of GPUs lies beside the program.
bool built_for_cuda();

/// GPUs that this process sees. Throws Error where the build has no CUDA, Failure where the machine has no GPU.
int count_cuda_devices();

/// What a GPU computes with: activations in bf16; in f32, to check by; or in f32 whose frozen products round what they
/// multiply to the 10 bits of tf32.
enum class Arithmetic { bf16, f32, tf32 };

/// A GPU, by its number. Throws Error where the build has no CUDA, Failure where the machine has no such GPU. One for
/// each thread at a time.
std::unique_ptr<Device> make_cuda_device(int ordinal, Arithmetic arithmetic = Arithmetic::bf16);

}  // namespace braid::kernels
