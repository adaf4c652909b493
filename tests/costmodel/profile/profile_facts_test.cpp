#include "costmodel/profile/profile_facts.h"

#include <gtest/gtest.h>

#include "costmodel/profile/derive.h"
#include "costmodel/shapes.h"

namespace braid::costmodel {
namespace {

ProfileEntry product(OperatorShape shape, std::int64_t tokens, double seconds) {
  ProfileEntry entry;
  entry.shape = shape;
  entry.tokens = tokens;
  entry.seconds = seconds;
  return entry;
}

TEST(ProfileFacts, CountFallsAndSuperlinearShards) {
  Profile profile;
  profile.entries = {product({64, 64}, 10, 1.0), product({64, 64}, 20, 2.0), product({64, 64}, 40, 1.5),
                     product({32, 64}, 20, 0.9), product({64, 32}, 20, 1.1)};
  const ProfileFacts facts = facts_of(profile);
  EXPECT_EQ(facts.neighbours, 2);
  EXPECT_EQ(facts.falls, 1);
  EXPECT_DOUBLE_EQ(facts.largest_fall, 0.25);
  EXPECT_EQ(facts.shards, 2);
  EXPECT_EQ(facts.superlinear, 1);
  EXPECT_EQ(facts.moves, 0) << "no device, no roofline";
  EXPECT_NE(facts.largest_departure.share, 0);
}

TEST(ProfileFacts, AnAnalyticProfileBreaksNoLaw) {
  Profile profile = analytic_profile("a40", DataType::bf16);
  profile.entries =
      derived_entries(profile, builtin_backbone("llama2-7b"), std::vector{adapter_on_all(16)}, 8192, 2048);
  const ProfileFacts facts = facts_of(profile);
  EXPECT_GT(facts.neighbours, 100);
  EXPECT_EQ(facts.falls, 0);
  EXPECT_GT(facts.moves, 0);
  EXPECT_EQ(facts.beats_memory, 0);
  EXPECT_EQ(facts.largest_departure.share, 0);
}

TEST(HoldOut, PredictsInnerPointsFromTheOthers) {
  Profile profile;
  for (const std::int64_t tokens : {10, 20, 40, 80})
    profile.entries.push_back(product({64, 64}, tokens, 1 + 0.1 * static_cast<double>(tokens)));
  profile.entries[2].seconds *= 1.5;
  const std::vector<HeldOutPoint> points = hold_out(profile);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].entry.tokens, 20);
  EXPECT_DOUBLE_EQ(points[0].predicted, 2 + (7.5 - 2) / 3);
  EXPECT_EQ(points[1].entry.tokens, 40);
  EXPECT_DOUBLE_EQ(points[1].predicted, 5) << "the spoilt point is not asked";
}

TEST(HoldOut, ChunksAreCurvesOfTheirOwn) {
  Profile profile;
  const auto measured = [&](std::int64_t chunk, std::int64_t prefix, double seconds) {
    ProfileEntry entry = product({4, 2, 16}, 2 * chunk, seconds);
    entry.op = Operator::attention;
    entry.context = prefix + chunk;
    entry.prefix = prefix;
    profile.entries.push_back(entry);
  };
  for (const std::int64_t chunk : {32, 64}) {
    for (const std::int64_t prefix : {0, 64, 128, 192})
      measured(chunk, prefix, static_cast<double>(2 * chunk * (10 + prefix)));
  }
  profile.entries[6].seconds *= 3;
  EXPECT_EQ(facts_of(profile).neighbours, 1 + 2 + 2);
  EXPECT_EQ(facts_of(profile).falls, 1);
  const std::vector<HeldOutPoint> points = hold_out(profile);
  ASSERT_EQ(points.size(), 2U);  // whole sequences are of two lengths alone
  EXPECT_EQ(points[0].entry.prefix, 128);
  EXPECT_DOUBLE_EQ(points[0].entry.seconds, 32 * 138) << "of one chunk";
  EXPECT_DOUBLE_EQ(points[0].predicted, 32 * 138);
  EXPECT_DOUBLE_EQ(points[1].predicted, 64 * 138) << "the spoilt point is not asked";
}

}  // namespace
}  // namespace braid::costmodel
