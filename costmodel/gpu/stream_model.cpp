#include "costmodel/gpu/stream_model.h"

#include <algorithm>
#include <array>

#include "costmodel/profile/least_squares.h"

namespace braid::costmodel {
namespace {

constexpr std::array<std::string_view, kStreamKindCount> kKindNames = {"add", "norm", "activation", "rope", "gather"};

using PerKind = std::array<StreamCoefficients, kStreamKindCount>;

// What `costmodel_study crossvalidate` printed for all layers in Vidur's profiles (results/costmodel/operators.txt).
constexpr PerKind kAmpereStreams = {{{1.49e-6, 0.84, 1.30},
                                     {2.71e-6, 2.27, 3.44},
                                     {1.87e-6, 2.04, 2.02},
                                     {2.44e-6, 2.04, 2.44},
                                     {2.48e-6, 6.24, 6.55}}};
constexpr PerKind kAmpereGa10xStreams = {{{5.05e-7, 0.60, 1.29},
                                          {1.74e-6, 1.47, 1.78},
                                          {7.04e-7, 1.14, 1.36},
                                          {1.51e-6, 0.78, 1.42},
                                          {1.54e-6, 1.94, 1.98}}};
constexpr PerKind kHopperStreams = {{{1.22e-6, 0.77, 1.17},
                                     {2.54e-6, 2.07, 3.79},
                                     {1.40e-6, 1.69, 1.73},
                                     {1.86e-6, 1.80, 2.40},
                                     {2.41e-6, 5.29, 5.69}}};

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
      return kAmpereStreams[place];
    case Generation::ampere_ga10x:
    case Generation::ada:
      return kAmpereGa10xStreams[place];
    case Generation::hopper:
      break;
  }
  return kHopperStreams[place];
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
