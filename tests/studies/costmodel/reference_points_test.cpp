#include "studies/costmodel/reference_points.h"

#include <cmath>
#include <filesystem>
#include <map>

#include "base/statistics.h"
#include "costmodel/gpu/gemm_model.h"
#include "costmodel/gpu/stream_model.h"
#include "costmodel/profile/gemm_fit.h"
#include "support.h"

namespace braid::costmodel::studies {
namespace {

/// Fewer tokens than this are decoding's.
constexpr std::int64_t kFewestTokens = 64;

std::filesystem::path layer_table() {
  return std::filesystem::path(BRAID_SOURCE_DIR) / "../shared/reference/vidur_layer_ops.csv";
}

/// Vidur's layers of as many tokens as training has, by GPU.
class VidursLayers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(layer_table())) GTEST_SKIP() << layer_table() << " is not here";
    for (const ReferencePoint& point : read_reference_points(layer_table())) {
      if (point.tokens >= kFewestTokens) points_[point.gpu].push_back(point);
    }
    ASSERT_EQ(points_.size(), 3U);
  }

  std::map<std::string, std::vector<ReferencePoint>> points_;
};

TEST_F(VidursLayers, KernelsThatMoveNumbersHaveTheCoefficientsOfAllLayers) {
  for (const auto& [gpu, points] : points_) {
    const Device& device = device_of(gpu);
    std::map<StreamKind, std::vector<StreamPoint>> kinds;
    for (const ReferencePoint& point : points) {
      if (const auto stream = stream_of(point)) kinds[stream->first].push_back(stream->second);
    }
    ASSERT_EQ(kinds.size(), kStreamKindCount);
    for (const auto& [kind, measured] : kinds) {
      const StreamCoefficients fitted = fit_stream(measured, device);
      const StreamCoefficients& shipped = stream_coefficients(device.generation, kind);
      for (const StreamPoint& point : measured) {
        const double expected = stream_seconds(device, fitted, point.bytes);
        EXPECT_NEAR(stream_seconds(device, shipped, point.bytes), expected, 0.01 * expected) << gpu << name(kind);
      }
    }
  }
}

TEST_F(VidursLayers, ProductsOfEitherBackboneAreNoFurtherOffThanTheFitSays) {
  // What results/costmodel/operators.txt says of 7B and 70B, and a little.
  using Bounds = std::pair<double, double>;
  const std::map<std::string, std::map<std::string, Bounds>> bounds = {
      {"a100", {{"llama2-7b", {0.055, 0.171}}, {"llama2-70b", {0.041, 0.176}}}},
      {"a40", {{"llama2-7b", {0.043, 0.194}}, {"llama2-70b", {0.042, 0.2}}}},
      {"h100", {{"llama2-7b", {0.049, 0.177}}, {"llama2-70b", {0.05, 0.218}}}}};
  for (const auto& [gpu, points] : points_) {
    const Device& device = device_of(gpu);
    std::map<std::string, std::vector<double>> errors;
    for (const ReferencePoint& point : points) {
      if (const auto gemm = gemm_of(point)) {
        const double predicted =
            gemm_seconds(device, DataType::bf16, gemm_coefficients(device.generation), gemm->shape);
        errors[point.backbone].push_back(std::abs(predicted / gemm->seconds - 1));
      }
    }
    ASSERT_EQ(errors.size(), 2U);
    for (const auto& [backbone, of_backbone] : errors) {
      EXPECT_EQ(of_backbone.size(), 192U);
      const auto& [half, most] = bounds.at(gpu).at(backbone);
      EXPECT_LE(median(of_backbone), half) << gpu << " " << backbone;
      EXPECT_LE(quantile(of_backbone, 0.95), most) << gpu << " " << backbone;
    }
  }
}

TEST_F(VidursLayers, ProductsOfABackboneFollowFromThoseOfAnother) {
  // What results/costmodel/operators.txt says of each, and a little.
  const std::map<std::string, std::pair<double, double>> bounds = {
      {"a100", {0.05, 0.18}}, {"a40", {0.051, 0.2}}, {"h100", {0.072, 0.205}}};
  for (const auto& [gpu, points] : points_) {
    const Device& device = device_of(gpu);
    std::vector<GemmPoint> known, asked;
    for (const ReferencePoint& point : points) {
      if (const auto gemm = gemm_of(point)) (point.backbone == "llama2-7b" ? known : asked).push_back(*gemm);
    }
    const GemmModel model(device, DataType::bf16, fit_gemm(known, device, DataType::bf16));
    std::vector<double> errors;
    for (const GemmPoint& point : asked) errors.push_back(std::abs(model.seconds(point.shape) / point.seconds - 1));
    EXPECT_LT(median(errors), bounds.at(gpu).first) << gpu;
    EXPECT_LT(quantile(errors, 0.95), bounds.at(gpu).second) << gpu;
  }
}

TEST(ReferencePoints, ABrokenRowIsNamedWithItsLine) {
  const TestFolder folder;
  folder.write(
      "a.csv",
      "gpu,model,tp,tokens,op,median_ms\na40,Llama-2-7b-hf,1,64,mlp_up_proj,0.4\na40,Llama-2-7b-hf,x,1,add,1\n");
  expect_error([&] { read_reference_points(folder / "a.csv"); }, "a.csv:3: ");
  folder.write("b.csv", "gpu,model\n");
  expect_error([&] { read_reference_points(folder / "b.csv"); },
               "b.csv:1: the columns are 'gpu,model'; give gpu,model,tp");
  folder.write("c.csv", "gpu,model,tp,tokens,op,median_ms\na40,GPT-9,1,64,mlp_up_proj,0.4\n");
  expect_error([&] { read_reference_points(folder / "c.csv"); }, "c.csv:2: unknown model 'GPT-9'");
}

}  // namespace
}  // namespace braid::costmodel::studies
