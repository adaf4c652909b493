#include "costmodel/stream_model.h"

#include <algorithm>
#include <array>

#include "costmodel/least_squares.h"

namespace braid::costmodel {
namespace {

constexpr std::array<std::string_view, kStreamKindCount> kKindNames = {"add", "norm", "activation", "rope", "gather"};

using PerKind = std::array<StreamCoefficients, kStreamKindCount>;

// What `braid profile --crossvalidate` printed for the layers of Llama-2-7B in Vidur's profiles (results/costmodel).
constexpr PerKind kAmpere = {{{1.53e-6, 0.80, 1.46},
                              {2.52e-6, 2.26, 4.14},
                              {1.80e-6, 2.06, 2.05},
                              {2.35e-6, 1.98, 2.44},
                              {2.53e-6, 6.33, 6.95}}};
constexpr PerKind kAmpereGa10x = {
    {{6.9e-7, 0.55, 1.31}, {1.87e-6, 1.40, 1.90}, {7.5e-7, 1.15, 1.39}, {1.35e-6, 0.84, 1.47}, {1.62e-6, 1.92, 1.98}}};
constexpr PerKind kHopper = {{{1.23e-6, 0.76, 1.30},
                              {2.30e-6, 2.18, 5.88},
                              {1.30e-6, 1.72, 1.78},
                              {1.73e-6, 1.83, 2.27},
                              {2.31e-6, 5.43, 5.66}}};

/// Launch, bytes that fit in the cache, bytes beyond it; the last two in seconds at the memory's bandwidth.
std::array<double, 3> features(const Device& device, double bytes) {
  const auto cache = static_cast<double>(device.l2_bytes);
  return {1, std::min(bytes, cache) / device.memory_bandwidth, std::max(0.0, bytes - cache) / device.memory_bandwidth};
}

}  // namespace

std::string_view name(StreamKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

double stream_seconds(const Device& device, const StreamCoefficients& coefficients, double bytes) {
  if (bytes <= 0) return 0;
  const auto [launch, cached, beyond] = features(device, bytes);
  const double seconds =
      launch * coefficients.launch_seconds + cached * coefficients.cached + beyond * coefficients.beyond_cache;
  return std::max(seconds, bytes / device.memory_bandwidth);
}

const StreamCoefficients& stream_coefficients(Generation generation, StreamKind kind) {
  const auto place = static_cast<std::size_t>(kind);
  switch (generation) {
    case Generation::ampere:
    case Generation::volta:
      return kAmpere[place];
    case Generation::ampere_ga10x:
    case Generation::ada:
      return kAmpereGa10x[place];
    case Generation::hopper:
      break;
  }
  return kHopper[place];
}

StreamCoefficients fit_stream(std::span<const StreamPoint> points, const Device& device) {
  const auto rows = static_cast<Eigen::Index>(points.size());
  Eigen::MatrixXd a(rows, 3);
  for (Eigen::Index i = 0; i < rows; ++i) {
    const StreamPoint& point = points[static_cast<std::size_t>(i)];
    const std::array<double, 3> terms = features(device, point.bytes);
    // Each row is divided by its measured time, so that errors are relative.
    for (Eigen::Index k = 0; k < 3; ++k) a(i, k) = terms[static_cast<std::size_t>(k)] / point.seconds;
  }
  const Eigen::VectorXd solution = non_negative_least_squares(a, Eigen::VectorXd::Ones(rows));
  return {solution[0], solution[1], solution[2]};
}

}  // namespace braid::costmodel
