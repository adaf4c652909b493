#include "costmodel/links/collective_model.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "costmodel/profile/cost_model.h"
#include "support.h"

namespace braid::costmodel {
namespace {

constexpr std::array kCollectives = {Operator::send_recv, Operator::all_reduce, Operator::reduce_scatter,
                                     Operator::all_gather};

struct NamedCase {
  std::string_view gpu;
  std::string_view link;
};
constexpr std::array kCases = {
    NamedCase{"a40", "nvlink"},          NamedCase{"a100", "nvswitch"},   NamedCase{"h100", "nvswitch"},
    NamedCase{"h100", "nvswitch-sharp"}, NamedCase{"l40s", "pcie4"},      NamedCase{"h100", "pcie5"},
    NamedCase{"v100", "pcie3"},          NamedCase{"a40", "ib-100g"},     NamedCase{"h100", "ib-400g"},
    NamedCase{"rtx3090", "eth-1g"},      NamedCase{"rtx3090", "eth-10g"}, NamedCase{"a6000", "cpu-staged"},
};

double seconds(const NamedCase& one, Operator op, double bytes, std::int64_t ranks) {
  const Device& device = device_of(one.gpu);
  const Link link = named_link(one.link, device);
  return collective_seconds(collective_coefficients(device.generation, link, op), link, op, bytes, ranks);
}

RC_GTEST_PROP(Collectives, NeverFallWithMoreBytesAndNeverBeatTheWire, ()) {
  const NamedCase one = *rc::gen::elementOf(std::vector<NamedCase>(kCases.begin(), kCases.end()));
  const Operator op = *rc::gen::elementOf(std::vector<Operator>(kCollectives.begin(), kCollectives.end()));
  const auto ranks = *rc::gen::inRange<std::int64_t>(2, 65);
  const auto bytes = *rc::gen::inRange<std::int64_t>(1, 1 << 28);
  const auto more = bytes + *rc::gen::inRange<std::int64_t>(0, 1 << 28);
  const Link link = named_link(one.link, device_of(one.gpu));
  const double n = static_cast<double>(ranks);
  const double least = op == Operator::send_recv ? 1 : (n - 1) / n;
  RC_ASSERT(seconds(one, op, static_cast<double>(more), ranks) >= seconds(one, op, static_cast<double>(bytes), ranks));
  RC_ASSERT(seconds(one, op, static_cast<double>(bytes), ranks) >=
            link.latency_seconds + least * static_cast<double>(bytes) / link.bandwidth_bytes_per_second * (1 - 1e-12));
}

TEST(Collectives, AnAllReduceIsAReduceScatterAndAnAllGatherOnABareWire) {
  const Link link{"custom", 1e9, 1e-5};
  const auto on = [&](Operator op) {
    return collective_seconds(collective_coefficients(Generation::ampere, link, op), link, op, 3e6, 3);
  };
  EXPECT_DOUBLE_EQ(on(Operator::all_reduce), on(Operator::reduce_scatter) + on(Operator::all_gather));
  // Two thirds of 3 MB over 1 GB/s and two hops.
  EXPECT_DOUBLE_EQ(on(Operator::all_gather), 2 * 1e-5 + 2e-3);
}

TEST(Collectives, ASwitchThatAddsSavesNearlyHalfOfALargeAllReduceAndNothingForTwo) {
  const NamedCase plain{"h100", "nvswitch"}, sharp{"h100", "nvswitch-sharp"};
  const double share = seconds(sharp, Operator::all_reduce, 1e9, 8) / seconds(plain, Operator::all_reduce, 1e9, 8);
  EXPECT_NEAR(share, (1 + 1.0 / 8) / (2 * 7.0 / 8), 0.01);
  EXPECT_LE(seconds(sharp, Operator::all_reduce, 1e9, 2), seconds(plain, Operator::all_reduce, 1e9, 2));
}

TEST(Collectives, ShareTheNodesLinkWhenSeveralNodesMeet) {
  const Device& device = device_of("a100");
  const Interconnect interconnect{named_link("nvswitch", device), named_link("ib-100g", device), 8};
  const auto over = [&](std::int64_t ranks, std::int64_t nodes) {
    return collective_seconds(device.generation, interconnect, Operator::all_reduce, 64e6, ranks, nodes);
  };
  EXPECT_GT(over(16, 2), over(8, 1));
  // Two nodes exchange all bytes once over their links, whatever is inside.
  EXPECT_GE(over(16, 2), 64e6 / 12.5e9);
  EXPECT_LT(over(16, 2), 1.1 * (over(2, 2) + over(8, 1)));
  // With one GPU a node there is nothing inside.
  EXPECT_DOUBLE_EQ(over(2, 2), collective_seconds(collective_coefficients(device.generation, interconnect.inter_node,
                                                                          Operator::all_reduce),
                                                  interconnect.inter_node, Operator::all_reduce, 64e6, 2));
}

TEST(Collectives, AFitRecoversPlantedCoefficientsUnderErraticSmallMessages) {
  const Link link{"custom", 100e9, 0};
  const CollectiveCoefficients planted{1e-5, 2e-6, 3, 1.3};
  std::vector<CollectivePoint> points;
  int i = 0;
  for (const std::int64_t ranks : {2, 4, 8}) {
    for (double bytes = 2e3; bytes < 1e9; bytes *= 1.5) {
      CollectivePoint point{Operator::all_reduce, bytes, ranks, 0};
      point.seconds = collective_seconds(planted, link, point.op, bytes, ranks);
      if (bytes < 1e6 && ++i % 4 == 0) point.seconds *= 2;
      points.push_back(point);
    }
  }
  const CollectiveCoefficients fitted = fit_collectives(points, link);
  EXPECT_NEAR(fitted.launch_seconds, planted.launch_seconds, 0.1 * planted.launch_seconds);
  EXPECT_NEAR(fitted.hop_seconds, planted.hop_seconds, 0.1 * planted.hop_seconds);
  EXPECT_NEAR(fitted.before_saturation, planted.before_saturation, 0.1 * planted.before_saturation);
  EXPECT_NEAR(fitted.saturated, planted.saturated, 0.02 * planted.saturated);
}

TEST(Collectives, AStagedCopyIsSlowerThanEveryWireInsideANode) {
  const NamedCase staged{"a6000", "cpu-staged"}, pcie{"a6000", "pcie3"};
  EXPECT_GT(seconds(staged, Operator::send_recv, 64e6, 2), 5 * seconds(pcie, Operator::send_recv, 64e6, 2));
}

TEST(Collectives, OthersWorkSlowsByTheMultiprocessorsTaken) {
  EXPECT_DOUBLE_EQ(overlap_slowdown(device_of("a40")), 84.0 / 76);
  EXPECT_DOUBLE_EQ(overlap_slowdown(device_of("a40"), 0), 1);
}

TEST(CostModel, KnowsWhichRanksShareANode) {
  Profile profile = analytic_profile("a40", DataType::bf16);
  profile.interconnect = {named_link("nvlink", device_of("a40")), named_link("eth-1g", device_of("a40")), 2};
  const CostModel cost(profile);
  const std::vector<std::int32_t> near = {0, 1}, far = {1, 2}, all = {0, 1, 2, 3};
  EXPECT_EQ(cost.group_shape(Operator::send_recv, near), OperatorShape{});
  EXPECT_EQ(cost.group_shape(Operator::send_recv, far), (OperatorShape{2, 2}));
  EXPECT_EQ(cost.group_shape(Operator::all_reduce, near), OperatorShape{2});
  EXPECT_EQ(cost.group_shape(Operator::all_reduce, all), (OperatorShape{4, 2}));
  const auto message = [&](const std::vector<std::int32_t>& ranks) {
    const OperatorShape shape = cost.group_shape(Operator::send_recv, ranks);
    return cost.estimate({Operator::send_recv, Pass::forward, shape, 1 << 20}).seconds;
  };
  EXPECT_GT(message(far), 100 * message(near));
}

}  // namespace
}  // namespace braid::costmodel
