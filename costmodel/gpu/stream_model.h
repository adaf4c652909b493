#pragma once

#include <span>
#include <string_view>

#include "costmodel/gpu/device.h"

namespace braid::costmodel {

/// Kernels that only move numbers: their time is a launch and their traffic. They differ in how well they use the
/// memory.
enum class StreamKind { add, norm, activation, rope, gather };
inline constexpr int kStreamKindCount = 5;
std::string_view name(StreamKind kind);

/// How a kind of kernel departs from the datasheet: traffic that fits in the L2 cache and traffic beyond it, each as a
/// multiple of the time that the memory's bandwidth allows.
struct StreamCoefficients {
  double launch_seconds = 0;
  double cached = 1;
  double beyond_cache = 1;
  bool operator==(const StreamCoefficients&) const = default;
};

/// Time of a kernel that reads and writes `bytes` in all. Never falls with more bytes, and never lies below
/// bytes / bandwidth.
double stream_seconds(const Device& device, const StreamCoefficients& coefficients, double bytes);

/// Fitted like the coefficients of products.
const StreamCoefficients& stream_coefficients(Generation generation, StreamKind kind);

struct StreamPoint {
  double bytes = 0;
  double seconds = 0;
};

/// The coefficients under which stream_seconds has the least squared relative error; none is negative.
StreamCoefficients fit_stream(std::span<const StreamPoint> points, const Device& device);

}  // namespace braid::costmodel
