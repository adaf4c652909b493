#include "exec/profiling/measured_samples.h"

#include <gtest/gtest.h>

namespace braid::exec {
namespace {

using costmodel::Operator;
using costmodel::Pass;

MeasuredSamples::Key key_of(Operator op, std::int64_t tokens) {
  return {op, Pass::forward, {64, 64}, tokens, 0, 0};
}

/// Phases of a machine at these paces, in each of which two kinds of work are done between reference passes.
MeasuredSamples measured_at(const std::vector<double>& paces) {
  MeasuredSamples samples;
  for (const double pace : paces) {
    for (int i = 0; i < 2; ++i) samples.add_reference(5 * pace);
    samples.add(key_of(Operator::linear, 32), 2 * pace);
    samples.add(key_of(Operator::rms_norm, 32), 0.5 * pace);
    for (int i = 0; i < 2; ++i) samples.add_reference(5 * pace);
  }
  return samples;
}

TEST(MeasuredSamples, AreToldAtTheUsualPaceAndWithoutThoseOfUnusualMoments) {
  const MeasuredSamples samples = measured_at({1, 1.05, 1.6, 0.95, 1, 1.5});
  EXPECT_DOUBLE_EQ(samples.reference_seconds(), 5 * (1 + 1.05) / 2);
  const double usual = samples.reference_seconds() / 5;
  const std::vector<costmodel::ProfileEntry> entries = samples.entries();
  ASSERT_EQ(entries.size(), 2U);
  for (const costmodel::ProfileEntry& entry : entries) {
    EXPECT_NEAR(entry.seconds, (entry.op == Operator::linear ? 2 : 0.5) * usual, 1e-12);
    EXPECT_NEAR(entry.spread, 0, 1e-12);
    EXPECT_EQ(entry.count, 4);
    EXPECT_EQ(entry.tokens, 32);
    EXPECT_EQ(entry.source, "measured");
  }
}

TEST(MeasuredSamples, WhereTooFewAreOfUsualMomentsAllAreTold) {
  const MeasuredSamples samples = measured_at({1, 1, 1.6, 1.6, 0.5, 0.5});
  const std::vector<costmodel::ProfileEntry> entries = samples.entries();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries.front().count, 6);
}

TEST(MeasuredSamples, PassesAreToldAtTheUsualPaceToo) {
  MeasuredSamples samples;
  for (int i = 0; i < 5; ++i) samples.add_reference(1);
  for (const double seconds : {10, 11, 12}) samples.add_pass({0, Pass::forward}, seconds);
  for (const double reference : {1, 1, 2, 2}) samples.add_reference(reference);
  samples.add_pass({0, Pass::forward}, 80);  // at twice the usual pace
  for (int i = 0; i < 2; ++i) samples.add_reference(2);
  samples.add_pass({1, Pass::backward}, 7);
  const auto passes = samples.passes();
  EXPECT_EQ(passes.at({0, Pass::forward}), 11);
  EXPECT_EQ(passes.size(), 2U);
  samples.clear();
  EXPECT_TRUE(samples.passes().empty());
  EXPECT_TRUE(samples.entries().empty());
}

}  // namespace
}  // namespace braid::exec
