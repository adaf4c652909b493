#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "kernels/kernels.h"

namespace braid::kernels {

/// Where a rank computes: its operators, and the memory that they work in. Whoever executes a plan is given one and
/// names none.
class Device {
 public:
  virtual ~Device() = default;
  /// "cpu", "reference"
  virtual std::string_view name() const = 0;
  virtual const Kernels& kernels() const = 0;
  /// The libraries that its times depend on, "oneDNN 2.6.3" and so on.
  virtual std::vector<std::string> library_versions() const = 0;

  /// A range of addresses, aligned to pages; memory is taken page by page as it is touched. Null where the system
  /// grants fewer bytes.
  virtual void* reserve(Bytes bytes) = 0;
  /// Gives the pages of a part of a range back; what is touched again is fresh. `first` and `bytes` are of whole pages.
  virtual void discard(void* first, Bytes bytes) = 0;
  virtual void release(void* base, Bytes bytes) = 0;
  static constexpr Bytes kPage = 4096;
};

/// This machine's processor, by kernels that are fast on it.
std::unique_ptr<Device> make_cpu_device();

/// The same, by kernels written to be read: what any other device is held against, operator by operator or on whole
/// models. Single-threaded, and slow.
std::unique_ptr<Device> make_reference_device();

}  // namespace braid::kernels
