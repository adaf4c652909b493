#include "costmodel/profile/cost_model.h"

#include "costmodel/shapes.h"
#include "support.h"

namespace braid::costmodel {
namespace {

ProfileEntry entry(Operator op, OperatorShape shape, std::int64_t tokens, double seconds, std::int64_t context = 0) {
  ProfileEntry point;
  point.op = op;
  point.shape = shape;
  point.tokens = tokens;
  point.context = context;
  point.seconds = seconds;
  point.source = "measured";
  return point;
}

CostModel model_of(std::vector<ProfileEntry> entries) {
  Profile profile;
  profile.entries = std::move(entries);
  return CostModel(profile);
}

OperatorCall call(Operator op, OperatorShape shape, std::int64_t tokens, double count = 1) {
  return {op, Pass::forward, shape, tokens, 0, 0, count};
}

OperatorCall attend(std::int64_t prefix, std::int64_t context, double count = 1) {
  return {Operator::attention, Pass::forward, {4, 2, 16}, context - prefix, context, prefix, count};
}

constexpr OperatorShape kLinear = {64, 128};

/// A curve with an overhead, given out of order.
CostModel linear_model() {
  return model_of({entry(Operator::linear, kLinear, 512, 5.5), entry(Operator::linear, kLinear, 64, 1.0),
                   entry(Operator::linear, kLinear, 128, 1.5), entry(Operator::rms_norm, {64}, 128, 0.25)});
}

/// Sequences of 64 and 128 tokens, measured in batches of 1 and 4; a quadratic curve.
CostModel attention_model() {
  return model_of(
      {entry(Operator::attention, {4, 2, 16}, 64, 1.0, 64), entry(Operator::attention, {4, 2, 16}, 512, 16.0, 128)});
}

TEST(CostModel, MeasuredPointsComeBackExactly) {
  const CostModel cost = linear_model();
  for (const auto& [tokens, seconds] : {std::pair{64, 1.0}, {128, 1.5}, {512, 5.5}}) {
    const Estimate estimate = cost.estimate(call(Operator::linear, kLinear, tokens));
    EXPECT_EQ(estimate.seconds, seconds);
    EXPECT_EQ(estimate.extrapolated_seconds, 0.0);
  }
}

TEST(CostModel, BetweenPointsTimeIsLinearAndMeasured) {
  const CostModel cost = linear_model();
  double before = 1.0;
  for (std::int64_t tokens = 65; tokens < 512; ++tokens) {
    const Estimate estimate = cost.estimate(call(Operator::linear, kLinear, tokens));
    EXPECT_GE(estimate.seconds, before);
    EXPECT_LE(estimate.seconds, 5.5);
    EXPECT_EQ(estimate.extrapolated_seconds, 0.0);
    before = estimate.seconds;
  }
  EXPECT_DOUBLE_EQ(cost.estimate(call(Operator::linear, kLinear, 96)).seconds, 1.25);
  EXPECT_DOUBLE_EQ(cost.estimate(call(Operator::linear, kLinear, 320)).seconds, 3.5);
}

TEST(CostModel, TimeIsLinearInCountAndAddsUp) {
  const CostModel cost = linear_model();
  const std::vector<OperatorCall> calls = {call(Operator::linear, kLinear, 96, 3),
                                           call(Operator::rms_norm, {64}, 128, 2),
                                           call(Operator::linear, kLinear, 1000, 0.5)};
  Estimate sum;
  for (OperatorCall one : calls) {
    const double count = one.count;
    one.count = 1;
    const Estimate once = cost.estimate(one);
    sum += {once.seconds * count, once.extrapolated_seconds * count};
  }
  const Estimate total = cost.estimate(calls);
  EXPECT_DOUBLE_EQ(total.seconds, sum.seconds);
  EXPECT_DOUBLE_EQ(total.extrapolated_seconds, sum.extrapolated_seconds);
  EXPECT_EQ(cost.estimate(std::span<const OperatorCall>()).seconds, 0.0);
}

TEST(CostModel, APassOfMeasuredOperatorsTakesLongerByItsSkewAndNothingElseDoes) {
  Profile profile;
  profile.entries = {entry(Operator::linear, kLinear, 64, 1.0)};
  profile.pass_skew = 1.03;
  profile.device = "a40";
  const CostModel cost(profile);
  const OperatorCall measured = call(Operator::linear, kLinear, 64, 3), derived = call(Operator::linear, {64, 64}, 64);
  EXPECT_DOUBLE_EQ(cost.estimate(std::vector{measured}).seconds, 1.03 * 3);
  EXPECT_DOUBLE_EQ(cost.price(measured).seconds, 1.03 * 3);
  EXPECT_DOUBLE_EQ(cost.estimate(measured).seconds, 3) << "by itself";
  EXPECT_DOUBLE_EQ(cost.price(derived).seconds, cost.estimate(derived).seconds);
  const PassWork work = cost.work(std::vector{measured, derived});
  EXPECT_DOUBLE_EQ(work.calls.seconds, 1.03 * 3 + cost.estimate(derived).seconds);
}

TEST(CostModel, WhatLiesOutsideTheMeasuredRangeIsCountedAsExtrapolated) {
  const CostModel cost = linear_model();
  const Estimate below = cost.estimate(call(Operator::linear, kLinear, 1));
  EXPECT_EQ(below.seconds, 1.0);
  EXPECT_EQ(below.extrapolated_seconds, below.seconds);
  const Estimate above = cost.estimate(call(Operator::linear, kLinear, 1024));
  EXPECT_DOUBLE_EQ(above.seconds, 2 * 5.5) << "no faster than the best rate that was measured, which is the last";
  EXPECT_EQ(above.extrapolated_seconds, above.seconds);
  EXPECT_GE(above.seconds, cost.estimate(call(Operator::linear, kLinear, 1023)).seconds);
  const Estimate lone = cost.estimate(call(Operator::rms_norm, {64}, 256));
  EXPECT_DOUBLE_EQ(lone.seconds, 0.5) << "one point alone: in proportion";
  EXPECT_EQ(lone.extrapolated_seconds, lone.seconds);
}

TEST(CostModel, BeyondWhatWasMeasuredNothingIsFasterThanAnythingThatWas) {
  // A slow start, after which the slope promises ten times the rate; another shape reached twice the last rate.
  Profile profile;
  profile.entries = {entry(Operator::linear, {64, 64}, 64, 9.0),    entry(Operator::linear, {64, 64}, 128, 10.0),
                     entry(Operator::linear, {64, 128}, 128, 10.0), entry(Operator::rms_norm, {64}, 64, 9.0),
                     entry(Operator::rms_norm, {64}, 128, 10.0),    entry(Operator::swiglu, {64}, 128, 5.0)};
  const CostModel cost(profile);
  const double rate = 2.0 * 64 * 128 * 128 / 10.0, bandwidth = 3 * 4.0 * 64 * 128 / 5.0;
  for (const std::int64_t tokens : {129, 1000, 100000}) {
    const auto count = static_cast<double>(tokens);
    EXPECT_GE(cost.estimate(call(Operator::linear, {64, 64}, tokens)).seconds, 2.0 * 64 * 64 * count / rate);
    EXPECT_GE(cost.estimate(call(Operator::rms_norm, {64}, tokens)).seconds, 2 * 4.0 * 64 * count / bandwidth);
    // Nor slower than in proportion, for overheads are never less than nothing.
    EXPECT_LE(cost.estimate(call(Operator::linear, {64, 64}, tokens)).seconds, 10.0 * count / 128 * (1 + 1e-12));
  }
  EXPECT_DOUBLE_EQ(cost.estimate(call(Operator::linear, {64, 64}, 100000)).seconds, 2.0 * 64 * 64 * 100000 / rate);
  profile.peak_flops = 4 * rate;  // the best of all, measured by itself
  EXPECT_LT(CostModel(profile).estimate(call(Operator::linear, {64, 64}, 100000)).seconds,
            cost.estimate(call(Operator::linear, {64, 64}, 100000)).seconds);
}

TEST(CostModel, NoWorkCostsNothing) {
  EXPECT_EQ(linear_model().estimate(call(Operator::linear, kLinear, 0)).seconds, 0.0);
  EXPECT_EQ(linear_model().estimate(call(Operator::linear, kLinear, 64, 0)).seconds, 0.0);
}

TEST(CostModel, PointsThatFallAreFittedByACurveThatDoesNot) {
  Profile profile;
  profile.entries = {entry(Operator::linear, kLinear, 64, 2.0), entry(Operator::linear, kLinear, 128, 1.0)};
  const CostModel raw(profile, Curves::raw), cost(profile);
  EXPECT_EQ(raw.estimate(call(Operator::linear, kLinear, 64)).seconds, 2.0);
  EXPECT_EQ(raw.estimate(call(Operator::linear, kLinear, 1280)).seconds, 10.0) << "not followed down";
  EXPECT_EQ(raw.largest_departure().share, 0);
  // The least of (x / 2 - 1)² + (x - 1)².
  EXPECT_DOUBLE_EQ(cost.estimate(call(Operator::linear, kLinear, 64)).seconds, 1.2);
  EXPECT_DOUBLE_EQ(cost.estimate(call(Operator::linear, kLinear, 1280)).seconds, 12.0) << "nor is it level for ever";
  EXPECT_DOUBLE_EQ(cost.largest_departure().share, 1.2 / 2 - 1);
  EXPECT_EQ(cost.largest_departure().work, 64);
}

TEST(CostModel, BeyondTheLastPointADevicesRooflineGoesOn) {
  Profile profile = analytic_profile("a100", DataType::bf16);
  const OperatorShape shape{4096, 4096};
  ProfileEntry measured = entry(Operator::linear, shape, 1024, 1.0);
  measured.dtype = "bf16";
  profile.entries = {measured};
  const CostModel cost(profile);
  const Roofline roofline(device_of("a100"), DataType::bf16);
  const auto at = [&](std::int64_t tokens) { return call(Operator::linear, shape, tokens); };
  EXPECT_EQ(cost.estimate(at(1024)).extrapolated_seconds, 0);
  const Estimate beyond = cost.estimate(at(5000));
  EXPECT_DOUBLE_EQ(beyond.seconds, roofline.seconds(at(5000)) / roofline.seconds(at(1024)));
  EXPECT_EQ(beyond.extrapolated_seconds, beyond.seconds);
}

TEST(CostModel, LaunchesThatTheGpuWaitsForAddUpAndThoseAheadOfItHide) {
  Profile profile = analytic_profile("a100-80", DataType::bf16);
  const CostModel ahead(profile);
  profile.exposed_launch_seconds = 20e-6;
  const CostModel waiting(profile);
  for (const std::int64_t tokens : {64, 8192}) {
    OperatorCall adapter = call(Operator::lora_dropout, {4096, 4096, 16, 1}, tokens, 3);
    const double launches = ahead.price(adapter).launches;
    ASSERT_GE(launches, 3 * 4);
    EXPECT_NEAR(waiting.estimate(adapter).seconds, ahead.estimate(adapter).seconds + launches * 20e-6, 1e-12);
    EXPECT_NEAR(waiting.price(adapter).seconds, ahead.price(adapter).seconds + launches * 20e-6, 1e-12);
    EXPECT_NEAR(waiting.work({&adapter, 1}).total().seconds, waiting.estimate(adapter).seconds, 1e-12);
  }
}

TEST(CostModel, BetweenPointsAttentionIsAQuadraticWithoutAConstant) {
  Profile profile;
  for (const std::int64_t length : {64, 256}) {
    const auto l = static_cast<double>(length);
    ProfileEntry point = entry(Operator::attention, {8, 2, 32}, length, 3 * l + 0.5 * l * l);
    point.context = length;
    profile.entries.push_back(point);
  }
  const CostModel cost(profile);
  for (const std::int64_t length : {64, 100, 180, 256}) {
    const auto l = static_cast<double>(length);
    const OperatorCall one{Operator::attention, Pass::forward, {8, 2, 32}, length, length};
    EXPECT_DOUBLE_EQ(cost.estimate(one).seconds, 3 * l + 0.5 * l * l);
  }
}

TEST(CostModel, AttentionIsCountedPerSequence) {
  const CostModel cost = attention_model();
  EXPECT_EQ(cost.estimate(attend(0, 64)).seconds, 1.0);
  EXPECT_EQ(cost.estimate(attend(0, 128)).seconds, 4.0) << "four sequences were measured in one run";
  EXPECT_DOUBLE_EQ(cost.estimate(attend(0, 128, 3)).seconds, 12.0);
  EXPECT_EQ(cost.estimate(attend(0, 128)).extrapolated_seconds, 0.0);
  const Estimate longer = cost.estimate(attend(0, 512));
  EXPECT_DOUBLE_EQ(longer.seconds, 4.0 * 16) << "beyond the last point with the square of the length";
  EXPECT_EQ(longer.extrapolated_seconds, longer.seconds);
}

TEST(CostModel, ChunksOfASequenceCostTogetherWhatItCosts) {
  const CostModel cost = attention_model();
  const double whole = cost.estimate(attend(0, 120)).seconds;
  const Estimate first = cost.estimate(attend(0, 70)), second = cost.estimate(attend(70, 120));
  EXPECT_DOUBLE_EQ(first.seconds + second.seconds, whole);
  EXPECT_EQ(second.extrapolated_seconds, second.seconds) << "a chunk with a prefix was never measured";
}

/// Whole sequences of 32 to 512 tokens, and chunks of 64 and 256 after prefixes of up to 448 and 256, two to a batch.
/// Each token takes `a`, each pair of a token and one before it `b`.
CostModel chunk_model(double a, double b) {
  const auto seconds = [&](double length, double prefix) { return length * (a + b * (prefix + length / 2)); };
  std::vector<ProfileEntry> entries;
  for (std::int64_t length = 32; length <= 512; length *= 2)
    entries.push_back(entry(Operator::attention, {4, 2, 16}, length, seconds(static_cast<double>(length), 0), length));
  for (const std::int64_t chunk : {256, 64}) {
    for (std::int64_t prefix = chunk; prefix + chunk <= 512; prefix += chunk) {
      ProfileEntry point = entry(Operator::attention, {4, 2, 16}, 2 * chunk,
                                 2 * seconds(static_cast<double>(chunk), static_cast<double>(prefix)), prefix + chunk);
      point.prefix = prefix;
      entries.push_back(point);
    }
  }
  return model_of(std::move(entries));
}

TEST(CostModel, ChunksBetweenMeasuredOnesTakeWhatTheirTokensAndPairsTake) {
  const double a = 3e-6, b = 2e-8;
  const CostModel cost = chunk_model(a, b);
  for (const std::int64_t length : {64, 80, 128, 192, 250, 256}) {
    for (const std::int64_t prefix : {16, 64, 100, 256}) {
      const Estimate chunk = cost.estimate(attend(prefix, prefix + length));
      const auto n = static_cast<double>(length), p = static_cast<double>(prefix);
      EXPECT_NEAR(chunk.seconds, n * (a + b * (p + n / 2)), 1e-12) << length << " after " << prefix;
      EXPECT_EQ(chunk.extrapolated_seconds, 0) << length << " after " << prefix;
    }
  }
  EXPECT_DOUBLE_EQ(cost.estimate(attend(64, 128, 5)).seconds, 5 * cost.estimate(attend(64, 128)).seconds);
}

TEST(CostModel, ChunksBeyondMeasuredOnesAreExtrapolated) {
  const double a = 3e-6, b = 2e-8;
  const CostModel cost = chunk_model(a, b);
  // A longer prefix goes on along the slope; other lengths in proportion to the nearest one.
  const Estimate later = cost.estimate(attend(640, 704));
  EXPECT_NEAR(later.seconds, 64 * (a + b * (640 + 32)), 1e-12);
  EXPECT_EQ(later.extrapolated_seconds, later.seconds);
  const Estimate shorter = cost.estimate(attend(64, 80));
  EXPECT_NEAR(shorter.seconds, cost.estimate(attend(64, 128)).seconds / 4, 1e-15);
  EXPECT_EQ(shorter.extrapolated_seconds, shorter.seconds);
  const Estimate longer = cost.estimate(attend(128, 640));
  EXPECT_NEAR(longer.seconds, 2 * cost.estimate(attend(128, 384)).seconds, 1e-15);
  EXPECT_EQ(longer.extrapolated_seconds, longer.seconds);
  // What was measured on one side alone is half known.
  const Estimate half = cost.estimate(attend(300, 428));
  EXPECT_GT(half.extrapolated_seconds, 0);
  EXPECT_LT(half.extrapolated_seconds, half.seconds);
}

TEST(CostModel, AnUnknownShapeIsRefusedWithTheOnesThatAreThere) {
  const CostModel cost = linear_model();
  expect_error(
      [&] {
        cost.estimate(call(Operator::linear, {64, 129}, 64));
      },
      "the profile has no 'linear' forward of shape [64, 129]; it has: [64, 128]; ", "braid profile");
  expect_error(
      [&] {
        cost.estimate(call(Operator::rope, {6, 16}, 64));
      },
      "'rope' forward of shape [6, 16]; it has: none, but: ");
  expect_error([&] { cost.estimate(attend(0, 64)); }, "'attention' forward");
  OperatorCall backward = call(Operator::linear, kLinear, 64);
  backward.pass = Pass::backward;
  expect_error([&] { cost.estimate(backward); }, "'linear' backward of shape [64, 128]; it has: none, but: ");
}

CostModel lora_model() {
  return model_of({entry(Operator::lora, {64, 128, 8, 2}, 100, 1.0), entry(Operator::lora, {64, 128, 8, 2}, 200, 2.0),
                   entry(Operator::lora, {64, 128, 32, 2}, 100, 3.0), entry(Operator::lora, {64, 128, 32, 2}, 200, 6.0),
                   entry(Operator::lora, {64, 128, 16, 1}, 100, 50.0)});
}

TEST(CostModel, BetweenMeasuredRanksTimeIsLinearInRank) {
  const CostModel cost = lora_model();
  const auto at = [&](std::int64_t rank, std::int64_t tokens) {
    return cost.estimate(call(Operator::lora, {64, 128, rank, 2}, tokens));
  };
  EXPECT_EQ(at(8, 100).seconds, 1.0);
  EXPECT_EQ(at(32, 100).seconds, 3.0);
  EXPECT_DOUBLE_EQ(at(20, 100).seconds, 2.0) << "adapters on other modules do not count";
  EXPECT_DOUBLE_EQ(at(20, 150).seconds, 3.0);
  EXPECT_EQ(at(20, 150).extrapolated_seconds, 0.0);
  EXPECT_EQ(at(20, 400).extrapolated_seconds, at(20, 400).seconds) << "within the ranks, beyond the tokens";
  for (std::int64_t rank = 8; rank < 32; ++rank) EXPECT_LE(at(rank, 130).seconds, at(rank + 1, 130).seconds);
}

TEST(CostModel, OutsideTheMeasuredRanksTimeIsLevelBelowAndInProportionAbove) {
  const CostModel cost = lora_model();
  const Estimate below = cost.estimate(call(Operator::lora, {64, 128, 4, 2}, 100));
  EXPECT_EQ(below.seconds, 1.0);
  EXPECT_EQ(below.extrapolated_seconds, 1.0);
  const Estimate above = cost.estimate(call(Operator::lora, {64, 128, 64, 2}, 100, 3));
  EXPECT_DOUBLE_EQ(above.seconds, 3 * 6.0);
  EXPECT_DOUBLE_EQ(above.extrapolated_seconds, 3 * 6.0);
}

TEST(CostModel, AdaptersOnOtherModulesOrWithDropoutAreNotGuessed) {
  const CostModel cost = lora_model();
  expect_error(
      [&] {
        cost.estimate(call(Operator::lora, {64, 256, 8, 2}, 100));
      },
      "'lora' forward of shape [64, 256, 8, 2]");
  expect_error([&] { cost.estimate(call(Operator::lora_dropout, {64, 128, 8, 2}, 100)); }, "'lora_dropout'", "none");
}

TEST(CostModel, AStageCostsWhatItsOperatorsCost) {
  const BackboneShape backbone = small_backbone();
  const MicrobatchLoad load = load_of(adapter_on_all(8), {40, 60});
  const StageShape stage = {6, true, true};
  std::vector<OperatorCall> calls;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    for (const OperatorCall& one : stage_operators(backbone, stage, load, pass, cpu_storage())) calls.push_back(one);
  }
  // A machine on which each kind of work takes a microsecond a token.
  std::vector<ProfileEntry> entries;
  double expected = 0;
  for (const OperatorCall& one : calls) {
    const std::int64_t context = one.context;
    entries.push_back(entry(one.op, one.shape, one.tokens, 1e-6 * static_cast<double>(one.tokens), context));
    entries.back().pass = one.pass;
    expected += 1e-6 * static_cast<double>(one.tokens) * one.count;
  }
  const Estimate estimate = model_of(entries).estimate(calls);
  EXPECT_NEAR(estimate.seconds, expected, 1e-12);
  EXPECT_EQ(estimate.extrapolated_seconds, 0.0);
}

TEST(CostModel, PointsOfOnePlaceAreTheirMeanAndOtherDataTypesAreNotMixedIn) {
  ProfileEntry other = entry(Operator::linear, kLinear, 128, 100.0);
  other.dtype = "bf16";
  const CostModel cost =
      model_of({entry(Operator::linear, kLinear, 64, 1.0), entry(Operator::linear, kLinear, 128, 2.0),
                entry(Operator::linear, kLinear, 128, 4.0), other});
  EXPECT_DOUBLE_EQ(cost.estimate(call(Operator::linear, kLinear, 128)).seconds, 3.0);
  EXPECT_DOUBLE_EQ(cost.estimate(call(Operator::linear, kLinear, 96)).seconds, 2.0);
}

}  // namespace
}  // namespace braid::costmodel
