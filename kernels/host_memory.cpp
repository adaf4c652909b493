#include "kernels/host_memory.h"

#include <sys/mman.h>

namespace braid::kernels {

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

}  // namespace braid::kernels
