#include "kernels/process_memory.h"

#include <fstream>
#include <string>

#include <malloc.h>
#include <unistd.h>

namespace braid::kernels {
namespace {

/// A line of /proc/self/status, "NAME:  N kB".
Bytes status_line(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word != name) continue;
    Bytes kibibytes = 0;
    status >> kibibytes;
    return kibibytes * kKibibyte;
  }
  return 0;
}

}  // namespace

Bytes resident_memory() {
  return status_line("VmRSS:");
}

Bytes peak_resident_memory() {
  return status_line("VmHWM:");
}

void reset_peak_memory() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

void return_large_blocks() {
  // Setting it also stops glibc from raising it, block by block freed, to 32 MB.
  ::mallopt(M_MMAP_THRESHOLD, static_cast<int>(128 * kKibibyte));
}

void return_free_memory() {
  ::malloc_trim(0);
}

Bytes physical_memory() {
  return static_cast<Bytes>(::sysconf(_SC_PHYS_PAGES)) * static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
}

}  // namespace braid::kernels
