#include "kernels/host_memory.h"

#include <cstring>
#include <fstream>
#include <new>

#include <sys/mman.h>

#include "kernels/process_memory.h"

namespace braid::kernels {
namespace {

constexpr std::align_val_t kAlignment{64};

class EndedEvent final : public Event {
 public:
  std::optional<SteadyClock::time_point> ended() override { return now_; }

 private:
  SteadyClock::time_point now_ = SteadyClock::now();
};

}  // namespace

std::string HostMemoryDevice::machine() const {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

Bytes HostMemoryDevice::memory() const {
  return physical_memory();
}

Bytes HostMemoryDevice::held() const {
  return resident_memory();
}

Bytes HostMemoryDevice::most_held() const {
  return peak_resident_memory();
}

void HostMemoryDevice::forget_most_held() {
  reset_peak_memory();
}

void HostMemoryDevice::trim() {
  return_free_memory();
}

void* HostMemoryDevice::reserve(Bytes bytes) {
  void* range = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return range == MAP_FAILED ? nullptr : range;
}

void HostMemoryDevice::discard(void* first, Bytes bytes) {
  ::madvise(first, static_cast<std::size_t>(bytes), MADV_DONTNEED);
}

void HostMemoryDevice::release(void* base, Bytes bytes) {
  ::munmap(base, static_cast<std::size_t>(bytes));
}

void* HostMemoryDevice::allocate(Bytes bytes) {
  return ::operator new(static_cast<std::size_t>(bytes), kAlignment);
}

void HostMemoryDevice::free(void* memory) {
  ::operator delete(memory, kAlignment);
}

void HostMemoryDevice::upload(std::span<const std::byte> from, void* to) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

void HostMemoryDevice::download(const void* from, std::span<std::byte> to) {
  if (!to.empty()) std::memcpy(to.data(), from, to.size());
}

void HostMemoryDevice::copy(const void* from, void* to, Bytes bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

std::unique_ptr<Event> HostMemoryDevice::record() {
  return std::make_unique<EndedEvent>();
}

}  // namespace braid::kernels
