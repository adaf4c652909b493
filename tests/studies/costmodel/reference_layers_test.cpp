#include "studies/costmodel/reference_layers.h"

#include <cmath>
#include <filesystem>

#include "studies/costmodel/mlora_facts.h"
#include "support.h"

namespace braid::costmodel::studies {
namespace {

std::filesystem::path reference(const char* table) {
  return std::filesystem::path(BRAID_SOURCE_DIR) / "../shared/reference" / table;
}

TEST(ReferenceLayers, CapacitiesOfLobrasReplicasFollowFromTheItems) {
  const std::filesystem::path csv = reference("lobra_llama7b_max_tokens.csv");
  if (!std::filesystem::exists(csv)) GTEST_SKIP() << csv << " is not here";
  int alike = 0, rows = 0;
  for (const ReferenceCapacity& row : read_reference_capacities(csv)) {
    alike += lobra_most_tokens(row.tp, row.pp, 40'000'000'000) == row.most_tokens ? 1 : 0;
    ++rows;
  }
  EXPECT_EQ(rows, 14);
  EXPECT_GE(alike, 11);
}

TEST(ReferenceLayers, LobrasLayersFollowFromOperatorsWithTheLaunchesOfMlorasFigure) {
  const std::filesystem::path csv = reference("lobra_llama7b_a100_layer.csv");
  if (!std::filesystem::exists(csv)) GTEST_SKIP() << csv << " is not here";
  const CostModel cost(lobra_profile(exposed_launch_seconds()));
  const std::vector<ReferenceLayer> layers = read_reference_layers(csv);
  ASSERT_EQ(layers.size(), 250);
  double mean = 0;
  for (const ReferenceLayer& layer : layers)
    mean += std::abs(lobra_layer_seconds(cost, layer) / layer.seconds - 1) / static_cast<double>(layers.size());
  EXPECT_LE(mean, 0.10);
}

TEST(ReferenceLayers, LaunchesOfAnEagerFrameworkAreThoseOfEightShards) {
  const std::filesystem::path csv = reference("lobra_llama7b_a100_layer.csv");
  if (!std::filesystem::exists(csv)) GTEST_SKIP() << csv << " is not here";
  std::vector<ReferenceLayer> eight;
  for (const ReferenceLayer& layer : read_reference_layers(csv)) {
    if (layer.tp == 8) eight.push_back(layer);
  }
  EXPECT_NEAR(fitted_launch_seconds(eight), kEagerLaunchSeconds, 0.05e-6);
}

TEST(ReferenceLayers, APlantedLaunchIsFound) {
  const CostModel planted(lobra_profile(17e-6));
  std::vector<ReferenceLayer> layers;
  for (const std::int64_t tp : {1, 4}) {
    for (const std::int64_t length : {128, 512, 1024}) layers.push_back({tp, 2, length, 0});
  }
  for (ReferenceLayer& layer : layers) layer.seconds = lobra_layer_seconds(planted, layer);
  EXPECT_NEAR(fitted_launch_seconds(layers), 17e-6, 1e-9);
}

TEST(ReferenceLayers, MoreTokensNeverTakeLessAndMoreMemoryNeverHoldsLess) {
  for (const std::int64_t tp : {1, 2, 8}) {
    for (const std::int64_t pp : {1, 4, 16}) {
      EXPECT_LT(lobra_peak_bytes(tp, pp, 1024), lobra_peak_bytes(tp, pp, 2048));
      EXPECT_LE(lobra_most_tokens(tp, pp, 24'000'000'000), lobra_most_tokens(tp, pp, 80'000'000'000));
    }
  }
  EXPECT_EQ(lobra_most_tokens(1, 1, 1'000'000'000), 0) << "not even the backbone fits";
}

TEST(ReferenceLayers, ABadRowIsNamed) {
  const TestFolder folder;
  folder.write("a.csv", "tp,seq_len,mbs,time\n1,128,1,3.1\n1,128,0,3.1\n");
  expect_error([&] { read_reference_layers(folder / "a.csv"); }, "a.csv:3: '0' in column 3 is no number above 0");
  folder.write("b.csv", "tp,pp,sp,max_tokens\n1,1,1\n");
  expect_error([&] { read_reference_capacities(folder / "b.csv"); }, "b.csv:2: '1,1,1' is not a row");
}

}  // namespace
}  // namespace braid::costmodel::studies
