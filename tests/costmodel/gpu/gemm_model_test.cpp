#include "costmodel/gpu/gemm_model.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "base/statistics.h"
#include "costmodel/profile/gemm_fit.h"
#include "support.h"

namespace braid::costmodel {
namespace {

double seconds(const Device& device, const GemmShape& shape, DataType type = DataType::bf16) {
  return gemm_seconds(device, type, gemm_coefficients(device.generation), shape);
}

const Device& any_device() {
  const std::vector<std::string> names = device_names();
  return device_of(names[*rc::gen::inRange<std::size_t>(0, names.size())]);
}

GemmShape any_shape() {
  return {*rc::gen::inRange(1, 9000), *rc::gen::inRange(1, 30000), *rc::gen::inRange(1, 60000)};
}

RC_GTEST_PROP(GemmModel, NeverFallsWithMoreRowsColumnsOrDepth, ()) {
  const Device& device = any_device();
  const GemmShape shape = any_shape();
  const std::int64_t more = *rc::gen::inRange(1, 3000);
  const double time = seconds(device, shape);
  RC_ASSERT(seconds(device, {shape.rows + more, shape.in, shape.out}) >= time);
  RC_ASSERT(seconds(device, {shape.rows, shape.in + more, shape.out}) >= time);
  RC_ASSERT(seconds(device, {shape.rows, shape.in, shape.out + more}) >= time);
}

RC_GTEST_PROP(GemmModel, NeverLiesBelowTheRoofline, ()) {
  const Device& device = any_device();
  const GemmShape shape = any_shape();
  for (const DataType type : {DataType::bf16, DataType::f32}) {
    const double time = seconds(device, shape, type);
    RC_ASSERT(time >= shape.flops() / device.peak_flops(type));
    RC_ASSERT(time >= shape.bytes(type) / device.memory_bandwidth);
  }
}

RC_GTEST_PROP(GemmModel, ShardsNeverCostLessThanTheirShare, ()) {
  const Device& device = any_device();
  const std::int64_t tp = *rc::gen::inRange(2, 17);
  const GemmShape shard = any_shape();
  const double share = seconds(device, shard) * static_cast<double>(tp) * (1 + 1e-12);
  RC_ASSERT(share >= seconds(device, {shard.rows, shard.in * tp, shard.out}));
  RC_ASSERT(share >= seconds(device, {shard.rows, shard.in, shard.out * tp}));
}

TEST(GemmModel, NothingCostsNothing) {
  EXPECT_EQ(seconds(device_of("a100"), {0, 4096, 4096}), 0);
}

TEST(Device, AnUnknownNameIsAnErrorThatListsTheKnown) {
  expect_error([] { device_of("b200"); }, "unknown GPU 'b200'; known: v100-sxm2, rtx3090, a40");
  EXPECT_EQ(device_of("h100").name, "h100-sxm");
}

/// Times that planted coefficients give, each off by a random factor.
std::vector<GemmPoint> planted(const Device& device, const GemmCoefficients& coefficients, double noise) {
  std::vector<GemmPoint> points;
  RandomStream random(11);
  for (const std::int64_t rows : {64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096}) {
    for (const auto& [in, out] : {std::pair(4096, 12288), std::pair(4096, 4096), std::pair(4096, 22016),
                                  std::pair(11008, 4096), std::pair(1376, 4096), std::pair(4096, 1536)}) {
      const GemmShape shape{rows, in, out};
      const double factor = 1 + noise * (2 * random.next_uniform() - 1);
      points.push_back({shape, gemm_seconds(device, DataType::bf16, coefficients, shape) * factor});
    }
  }
  return points;
}

TEST(GemmFit, RecoversPlantedTimesUnderNoise) {
  const Device& device = device_of("a100");
  GemmCoefficients planted_coefficients;
  planted_coefficients.launch_seconds = 3e-6;
  planted_coefficients.block_seconds = 1e-6;
  planted_coefficients.bandwidth_efficiency = 0.8;
  planted_coefficients.wave_rounding = 0.7;
  planted_coefficients.cache_bandwidth = 4;
  planted_coefficients.block_depth = 40;
  planted_coefficients.rate_efficiency = 0.75;
  const GemmCoefficients fitted = fit_gemm(planted(device, planted_coefficients, 0.03), device, DataType::bf16);
  // Many coefficients give the same times; the times are what must come back, also between the points.
  std::vector<double> errors;
  for (const std::int64_t rows : {96, 320, 640, 1280, 2560}) {
    for (const auto& [in, out] : {std::pair(4096, 8192), std::pair(5504, 4096), std::pair(2752, 4096)}) {
      const GemmShape shape{rows, in, out};
      errors.push_back(std::abs(gemm_seconds(device, DataType::bf16, fitted, shape) /
                                    gemm_seconds(device, DataType::bf16, planted_coefficients, shape) -
                                1));
    }
  }
  EXPECT_LT(median(errors), 0.03);
  EXPECT_LT(*std::max_element(errors.begin(), errors.end()), 0.12);
}

TEST(GemmFit, TooFewPointsAreAnError) {
  const std::vector<GemmPoint> few(5, {{64, 64, 64}, 1e-5});
  expect_error([&] { fit_gemm(few, device_of("a40"), DataType::bf16); }, "5 measured products are too few");
}

}  // namespace
}  // namespace braid::costmodel
