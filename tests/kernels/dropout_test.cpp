#include "kernels/dropout.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "testing.h"

namespace braid::kernels {
namespace {

using testing::normal_matrix;
using testing::OwnedMatrix;
using testing::same_bits;
using testing::with_threads;

/// Rows of two samples at random positions, with the memory that DropoutRows looks at.
struct Rows {
  std::vector<std::int32_t> positions;
  std::vector<std::int64_t> samples;
  std::uint64_t key = 0x0123456789ABCDEF;
  float probability = 0.1F;

  Rows(RandomStream& random, std::int64_t count) {
    for (std::int64_t t = 0; t < count; ++t) {
      positions.push_back(static_cast<std::int32_t>(random.next_below(100000)));
      samples.push_back(static_cast<std::int64_t>(random.next_below(2) << 40));
    }
  }
  operator DropoutRows() const { return {positions, samples, key, probability}; }
};

OwnedMatrix ones(std::int64_t rows, std::int64_t columns) {
  OwnedMatrix matrix(rows, columns);
  for (std::int64_t t = 0; t < rows; ++t) std::fill_n(matrix.view().row(t), columns, 1.0F);
  return matrix;
}

RC_GTEST_PROP(Dropout, EqualsItsReference, ()) {
  const std::int64_t count = *rc::gen::inRange(0, 20), columns = *rc::gen::inRange(1, 600);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  Rows rows(random, count);
  rows.key = *rc::gen::arbitrary<std::uint64_t>();
  rows.probability = *rc::gen::element(0.0F, 0.05F, 0.5F, 0.999F);
  const bool accumulate = *rc::gen::arbitrary<bool>();
  const OwnedMatrix x = normal_matrix(random, count, columns);
  OwnedMatrix y = normal_matrix(random, count, columns), expected = y;
  cpu::dropout(rows, x, accumulate, y);
  reference::dropout(rows, x, accumulate, expected);
  RC_ASSERT(testing::near(y, expected, accumulate ? 1e-6 : 0.0));
  RC_ASSERT(y.guards_untouched());
}

/// A shard's columns lose what they lose in the whole matrix.
RC_GTEST_PROP(Dropout, OfSomeColumnsIsThatOfTheWhole, ()) {
  const std::int64_t count = *rc::gen::inRange(1, 9), columns = *rc::gen::inRange(1, 300);
  const std::int64_t first = *rc::gen::inRange<std::int64_t>(0, columns);
  const std::int64_t last = *rc::gen::inRange<std::int64_t>(first + 1, columns + 1);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  Rows rows(random, count);
  rows.probability = 0.3F;
  const OwnedMatrix x = normal_matrix(random, count, columns);
  OwnedMatrix whole(count, columns), part(count, last - first);
  reference::dropout(rows, x, false, whole);
  DropoutRows of_part = rows;
  of_part.first_column = first;
  for (const bool on_cpu : {false, true}) {
    (on_cpu ? cpu::dropout : reference::dropout)(of_part, x.view().column_range(first, last), false, part);
    for (std::int64_t t = 0; t < count; ++t) {
      for (std::int64_t i = first; i < last; ++i) RC_ASSERT(part.at(t, i - first) == whole.at(t, i));
    }
  }
}

TEST(Dropout, DropsTheShareItWasAskedFor) {
  RandomStream random(1);
  constexpr std::int64_t kRows = 500, kColumns = 1000;
  Rows rows(random, kRows);
  for (const float probability : {0.05F, 0.5F, 0.9F}) {
    rows.probability = probability;
    OwnedMatrix y(kRows, kColumns);
    cpu::dropout(rows, ones(kRows, kColumns), false, y);
    double dropped = 0.0, sum = 0.0;
    for (std::int64_t t = 0; t < kRows; ++t) {
      for (std::int64_t i = 0; i < kColumns; ++i) {
        dropped += y.at(t, i) == 0.0F ? 1.0 : 0.0;
        sum += y.at(t, i);
      }
    }
    const double numbers = kRows * kColumns;
    const double deviation = std::sqrt(probability * (1.0 - probability) / numbers);
    EXPECT_NEAR(dropped / numbers, probability, 5.0 * deviation);
    EXPECT_NEAR(sum / numbers, 1.0, 5.0 * deviation / (1.0 - probability));
  }
}

TEST(Dropout, KeysSamplesPositionsAndElementsDrawOnTheirOwn) {
  RandomStream random(2);
  constexpr std::int64_t kColumns = 100000;
  Rows rows(random, 1);
  rows.probability = 0.5F;
  const auto mask = [&] {
    OwnedMatrix y(1, kColumns);
    cpu::dropout(rows, ones(1, kColumns), false, y);
    return y;
  };
  const OwnedMatrix base = mask();
  const auto agreement = [&](const OwnedMatrix& other, std::int64_t shift) {
    double same = 0.0;
    for (std::int64_t i = shift; i < kColumns; ++i) same += base.at(0, i) == other.at(0, i - shift) ? 1.0 : 0.0;
    return same / static_cast<double>(kColumns - shift);
  };
  for (const std::int64_t shift : {1, 2, 4, 16}) EXPECT_NEAR(agreement(base, shift), 0.5, 0.01) << shift;
  ++rows.key;
  EXPECT_NEAR(agreement(mask(), 0), 0.5, 0.01);
  --rows.key;
  ++rows.samples[0];
  EXPECT_NEAR(agreement(mask(), 0), 0.5, 0.01);
  --rows.samples[0];
  ++rows.positions[0];
  EXPECT_NEAR(agreement(mask(), 0), 0.5, 0.01);
}

TEST(Dropout, ARowsMaskDoesNotDependOnWhereItStands) {
  RandomStream random(3);
  constexpr std::int64_t kRows = 60, kColumns = 777;
  const Rows rows(random, kRows);
  const OwnedMatrix x = normal_matrix(random, kRows, kColumns);
  OwnedMatrix y(kRows, kColumns);
  with_threads(1, [&] { cpu::dropout(rows, x, false, y); });
  Rows later = rows;
  later.positions.erase(later.positions.begin(), later.positions.begin() + 23);
  later.samples.erase(later.samples.begin(), later.samples.begin() + 23);
  OwnedMatrix shifted(kRows - 23, kColumns, 5, 2);
  with_threads(3, [&] { cpu::dropout(later, x.view().row_range(23, kRows), false, shifted); });
  EXPECT_TRUE(same_bits(shifted, y.view().row_range(23, kRows)));
}

TEST(Dropout, BackwardDropsWhatForwardDropped) {
  RandomStream random(4);
  const Rows rows(random, 10);
  const OwnedMatrix x = normal_matrix(random, 10, 130), dy = normal_matrix(random, 10, 130);
  OwnedMatrix y(10, 130), dx(10, 130);
  cpu::dropout(rows, x, false, y);
  cpu::dropout(rows, dy, false, dx);
  for (std::int64_t t = 0; t < 10; ++t) {
    for (std::int64_t i = 0; i < 130; ++i) EXPECT_EQ(y.at(t, i) == 0.0F, dx.at(t, i) == 0.0F) << t << ", " << i;
  }
}

TEST(Dropout, WorksInPlace) {
  RandomStream random(5);
  const Rows rows(random, 10);
  OwnedMatrix x = normal_matrix(random, 10, 333), y(10, 333);
  cpu::dropout(rows, x, false, y);
  cpu::dropout(rows, x, false, x);
  EXPECT_TRUE(same_bits(x, y));
}

TEST(Dropout, ProbabilityZeroKeepsEveryBit) {
  RandomStream random(6);
  Rows rows(random, 5);
  rows.probability = 0.0F;
  const OwnedMatrix x = normal_matrix(random, 5, 100);
  OwnedMatrix y(5, 100);
  cpu::dropout(rows, x, false, y);
  EXPECT_TRUE(same_bits(y, x));
}

TEST(Dropout, DroppedElementsAreZeroWhateverTheyWere) {
  RandomStream random(7);
  Rows rows(random, 1);
  rows.probability = 0.9F;
  OwnedMatrix x(1, 1000), y(1, 1000);
  std::fill_n(x.view().row(0), 1000, std::numeric_limits<float>::infinity());
  cpu::dropout(rows, x, false, y);
  for (std::int64_t i = 0; i < 1000; ++i) EXPECT_FALSE(std::isnan(y.at(0, i)));
}

}  // namespace
}  // namespace braid::kernels
