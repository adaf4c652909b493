#include "sim/cluster/gpu_pool.h"

#include <bit>
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "support.h"

namespace braid::sim {
namespace {

std::int64_t count_of(const GpuSet& set) {
  std::int64_t count = 0;
  for (const NodeGpus& part : set) count += std::popcount(part.gpus);
  return count;
}

/// Whether `gpus` fit by the rule alone: whole nodes, and one more for the rest; any GPUs of a flat pool.
bool fits_by_rule(const GpuPool& pool, std::int64_t gpus, bool flat) {
  if (flat) return gpus <= pool.free();
  std::int64_t whole = 0;
  std::map<std::int64_t, std::int64_t> nodes;
  for (std::int64_t node = 0; node < pool.nodes(); ++node) ++nodes[std::popcount(pool.free_of(node))];
  whole = gpus / pool.gpus_per_node();
  const std::int64_t rest = gpus % pool.gpus_per_node();
  if (nodes[pool.gpus_per_node()] < whole) return false;
  nodes[pool.gpus_per_node()] -= whole;
  for (const auto& [free, count] : nodes) {
    if (rest == 0 || (free >= rest && count > 0)) return true;
  }
  return false;
}

RC_GTEST_PROP(GpuPool, HasRoomForAsManyGangsAsFitOneAfterTheOther, ()) {
  const std::int64_t nodes = *rc::gen::inRange(1, 12), each = *rc::gen::inRange(1, 9);
  const bool flat = *rc::gen::arbitrary<bool>();
  const std::int64_t gpus = *rc::gen::inRange(1, static_cast<int>(nodes * each) + 2);
  GpuPool pool(nodes, each, flat, Placement::packed);
  for (std::int64_t node = 0; node < nodes; ++node) {
    const std::uint64_t broken = *rc::gen::inRange<std::uint64_t>(0, 1ULL << each) & pool.free_of(node);
    if (*rc::gen::inRange(0, 2) == 0) pool.break_down({static_cast<std::int32_t>(node), broken});
  }
  const std::int64_t room = pool.room_for(gpus);
  std::int64_t taken = 0;
  for (; pool.fits(gpus); ++taken) pool.take(gpus);
  RC_ASSERT(room == taken);
}

RC_GTEST_PROP(GpuPool, NoGpuIsTwicePlacedAndGangsFitByTheRule, ()) {
  const std::int64_t nodes = *rc::gen::inRange(1, 9), each = *rc::gen::inRange(1, 9);
  const bool flat = *rc::gen::arbitrary<bool>();
  const auto placement = *rc::gen::element(Placement::packed, Placement::spread, Placement::frag);
  GpuPool pool(nodes, each, flat, placement);
  pool.expect({{1, 3}, {2, 1}, {4, 1}, {16, 1}});
  std::vector<GpuSet> held;
  std::vector<std::uint64_t> taken(static_cast<std::size_t>(nodes), 0);
  for (int step = 0; step < 60; ++step) {
    const std::int64_t gpus = *rc::gen::inRange(1, static_cast<int>(nodes * each) + 2);
    RC_ASSERT(pool.fits(gpus) == fits_by_rule(pool, gpus, flat));
    if (pool.fits(gpus) && *rc::gen::inRange(0, 3) > 0) {
      held.push_back(pool.take(gpus));
      RC_ASSERT(count_of(held.back()) == gpus);
      if (!flat) RC_ASSERT(static_cast<std::int64_t>(held.back().size()) == (gpus + each - 1) / each);
      for (const NodeGpus& part : held.back()) {
        RC_ASSERT((taken[static_cast<std::size_t>(part.node)] & part.gpus) == 0U);
        taken[static_cast<std::size_t>(part.node)] |= part.gpus;
      }
    } else if (!held.empty()) {
      const std::size_t which = *rc::gen::inRange<std::size_t>(0, held.size());
      pool.give(held[which]);
      for (const NodeGpus& part : held[which]) taken[static_cast<std::size_t>(part.node)] &= ~part.gpus;
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
    }
    std::int64_t used = 0;
    for (const std::uint64_t mask : taken) used += std::popcount(mask);
    RC_ASSERT(pool.free() == nodes * each - used);
  }
}

TEST(GpuPool, PlacementsChooseNodesByTheirRule) {
  // Nodes with 4, 2, 1 free GPUs.
  const auto node_for = [](Placement placement, std::vector<std::pair<std::int32_t, double>> sizes) {
    GpuPool pool(3, 4, false, placement);
    pool.expect(std::move(sizes));
    std::vector<GpuSet> firsts;
    for (int i = 0; i < 3; ++i) firsts.push_back(pool.take(4));
    pool.give(firsts[0]);
    pool.give({{firsts[1][0].node, 0b0011}});
    pool.give({{firsts[2][0].node, 0b0001}});
    return std::pair(pool.take(1)[0].node, firsts[0][0].node);
  };
  const auto [packed, empty] = node_for(Placement::packed, {});
  EXPECT_EQ(packed, 2);
  EXPECT_EQ(node_for(Placement::spread, {}).first, empty);
  // Jobs of two GPUs: the single free GPU is of no use to them, taking it loses least.
  EXPECT_EQ(node_for(Placement::frag, {{2, 1}}).first, 2);
  // Jobs of four only: what the half-full nodes have is lost already, the whole node is spared.
  EXPECT_NE(node_for(Placement::frag, {{4, 1}}).first, empty);
}

TEST(GpuPool, FreeGpusThatAreTooFewForTheNextJobAreFragmented) {
  GpuPool pool(3, 4, false, Placement::packed);
  pool.expect({{1, 1}, {2, 1}, {4, 2}});
  EXPECT_EQ(pool.fragmented(), 0);
  pool.take(3);  // one left, which is enough for one job of four
  EXPECT_EQ(pool.fragmented(), 0.75);
  pool.take(2);  // two left on another, enough for half of them
  EXPECT_EQ(pool.fragmented(), 0.75 + 1);
  pool.take(4);
  EXPECT_EQ(pool.fragmented(), 1.75);
  GpuPool flat(3, 4, true, Placement::packed);
  flat.expect({{4, 1}});
  flat.take(3);
  EXPECT_EQ(flat.fragmented(), 0);
}

TEST(GpuPool, GivingBackTwiceIsCaught) {
  GpuPool pool(2, 4, false, Placement::packed);
  const GpuSet taken = pool.take(3);
  pool.give(taken);
  EXPECT_THROW(pool.give(taken), InternalError);
  EXPECT_THROW(GpuPool(0, 4, true, Placement::packed), Error);
  EXPECT_THROW(GpuPool(1, 65, true, Placement::packed), Error);
  EXPECT_TRUE(contains(error_of([] { parse_placement("tight"); }), "packed, spread, frag"));
}

TEST(GpuPool, BrokenGpusAreNoLongerOfTheCluster) {
  GpuPool pool(1, 4, false, Placement::packed);
  pool.break_down({0, 0b0100});
  EXPECT_EQ(pool.size(), 3);
  EXPECT_FALSE(pool.fits(4));
  EXPECT_EQ(pool.room_for(4), 0);
  EXPECT_TRUE(pool.could_fit(4));
  pool.repair({0, 0b0100});
  EXPECT_TRUE(pool.fits(4));
  EXPECT_EQ(pool.room_for(4), 1);
  EXPECT_THROW(pool.repair({0, 0b0100}), InternalError);
}

}  // namespace
}  // namespace braid::sim
