#include "costmodel/gpu/stream_model.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace braid::costmodel {
namespace {

TEST(StreamModel, NeverFallsNorBeatsTheMemory) {
  for (const std::string& name : device_names()) {
    const Device& device = device_of(name);
    for (int kind = 0; kind < kStreamKindCount; ++kind) {
      const StreamCoefficients& coefficients = stream_coefficients(device.generation, static_cast<StreamKind>(kind));
      double last = 0;
      for (double bytes = 1; bytes < 1e10; bytes *= 1.3) {
        const double seconds = stream_seconds(device, coefficients, bytes);
        EXPECT_GE(seconds, last);
        EXPECT_GE(seconds, bytes / device.memory_bandwidth);
        last = seconds;
      }
    }
  }
}

TEST(StreamModel, FitRecoversPlantedCoefficients) {
  const Device& device = device_of("a40");
  const StreamCoefficients planted{2e-6, 1.2, 1.6};
  std::vector<StreamPoint> points;
  RandomStream random(5);
  for (double bytes = 1e5; bytes < 1e9; bytes *= 1.5)
    points.push_back({bytes, stream_seconds(device, planted, bytes) * (1 + 0.02 * (2 * random.next_uniform() - 1))});
  const StreamCoefficients fitted = fit_stream(points, device);
  EXPECT_NEAR(fitted.launch_seconds, planted.launch_seconds, 0.05 * planted.launch_seconds);
  EXPECT_NEAR(fitted.cached, planted.cached, 0.05 * planted.cached);
  EXPECT_NEAR(fitted.beyond_cache, planted.beyond_cache, 0.05 * planted.beyond_cache);
}

}  // namespace
}  // namespace braid::costmodel
