#include "kernels/cross_entropy.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "testing.h"

namespace braid::kernels {
namespace {

using testing::as_row;
using testing::fill_normal;
using testing::normal_matrix;
using testing::normal_vector;
using testing::OwnedMatrix;
using testing::with_threads;

std::vector<std::int32_t> random_labels(RandomStream& random, std::int64_t rows, std::int64_t vocabulary) {
  std::vector<std::int32_t> labels;
  for (std::int64_t t = 0; t < rows; ++t) {
    labels.push_back(static_cast<std::int32_t>(random.next_below(static_cast<std::uint64_t>(vocabulary))));
  }
  return labels;
}

TEST(CrossEntropy, EqualLogitsCostTheLogOfTheVocabulary) {
  OwnedMatrix logits(1, 1000);
  std::vector<float> losses(1);
  cpu::cross_entropy(logits, std::vector<std::int32_t>{7}, std::vector<float>{1.0F}, losses);
  EXPECT_NEAR(losses[0], std::log(1000.0), 1e-6);
}

TEST(CrossEntropy, ReferenceGradientEqualsFiniteDifferences) {
  RandomStream random(1);
  OwnedMatrix logits = normal_matrix(random, 3, 9);
  const std::vector<std::int32_t> labels = random_labels(random, 3, 9);
  const std::vector<float> scales = normal_vector(random, 3);
  std::vector<float> losses(3);
  OwnedMatrix gradient = logits;
  reference::cross_entropy(gradient, labels, scales, losses);
  const auto loss = [&] {
    OwnedMatrix consumed = logits;
    reference::cross_entropy(consumed, labels, scales, losses);
    return testing::inner_product(as_row(losses), as_row(scales));
  };
  EXPECT_TRUE(testing::near(gradient, finite_differences(logits, loss), 1e-3));
}

RC_GTEST_PROP(CrossEntropy, EqualsItsReferenceAndItsGradientSumsToZero, ()) {
  const std::int64_t rows = *rc::gen::inRange(0, 20), vocabulary = *rc::gen::inRange(1, 5000);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  OwnedMatrix logits(rows, vocabulary);
  fill_normal(logits, random, *rc::gen::element(1.0F, 20.0F));
  const std::vector<std::int32_t> labels = random_labels(random, rows, vocabulary);
  const std::vector<float> scales = normal_vector(random, rows);
  std::vector<float> losses(static_cast<std::size_t>(rows)), losses_expected = losses;
  OwnedMatrix expected = logits;
  cpu::cross_entropy(logits, labels, scales, losses);
  reference::cross_entropy(expected, labels, scales, losses_expected);
  RC_ASSERT(testing::near(as_row(losses), as_row(losses_expected), 1e-6));
  RC_ASSERT(testing::near(logits, expected, 1e-6));
  RC_ASSERT(logits.guards_untouched());
  for (std::int64_t t = 0; t < rows; ++t) {
    double sum = 0.0;
    for (std::int64_t i = 0; i < vocabulary; ++i) sum += logits.at(t, i);
    RC_ASSERT(std::abs(sum) < 1e-5);
  }
}

TEST(CrossEntropy, ALogitThatIsNoNumberShowsInTheLoss) {
  OwnedMatrix logits(1, 50);
  logits.at(0, 20) = std::nanf("");
  std::vector<float> losses(1);
  cpu::cross_entropy(logits, std::vector<std::int32_t>{7}, std::vector<float>{1.0F}, losses);
  EXPECT_TRUE(std::isnan(losses[0]));
}

/// Shards of the vocabulary come to the losses and the gradient of the whole.
RC_GTEST_PROP(CrossEntropy, SharesOfTheVocabularyMakeTheWhole, ()) {
  const std::int64_t rows = *rc::gen::inRange(1, 8), shards = *rc::gen::inRange(1, 5);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  std::vector<std::int64_t> ends;  // of each shard's part
  for (std::int64_t s = 0; s < shards; ++s)
    ends.push_back((s == 0 ? 0 : ends.back()) + *rc::gen::inRange<std::int64_t>(1, 700));
  OwnedMatrix logits(rows, ends.back());
  fill_normal(logits, random, *rc::gen::element(1.0F, 20.0F));
  const std::vector<std::int32_t> labels = random_labels(random, rows, ends.back());
  const std::vector<float> scales = normal_vector(random, rows);
  std::vector<float> expected_losses(static_cast<std::size_t>(rows));
  OwnedMatrix expected = logits;
  reference::cross_entropy(expected, labels, scales, expected_losses);
  for (const bool on_cpu : {false, true}) {
    OwnedMatrix parts = logits, shares(rows, 3 * shards);
    const auto part_of = [&](std::int64_t s) {
      return parts.view().column_range(s == 0 ? 0 : ends[static_cast<std::size_t>(s - 1)],
                                       ends[static_cast<std::size_t>(s)]);
    };
    const auto labels_of = [&](std::int64_t s) {
      std::vector<std::int32_t> own = labels;
      for (std::int32_t& label : own)
        label -= static_cast<std::int32_t>(s == 0 ? 0 : ends[static_cast<std::size_t>(s - 1)]);
      return own;
    };
    for (std::int64_t s = 0; s < shards; ++s)
      (on_cpu ? cpu::cross_entropy_share : reference::cross_entropy_share)(
          part_of(s), labels_of(s), shares.view().column_range(3 * s, 3 * s + 3));
    for (std::int64_t s = 0; s < shards; ++s) {
      std::vector<float> losses(static_cast<std::size_t>(rows));
      (on_cpu ? cpu::cross_entropy_of_shares : reference::cross_entropy_of_shares)(part_of(s), labels_of(s), scales,
                                                                                   shares, s, losses);
      RC_ASSERT(testing::near(as_row(losses), as_row(expected_losses), 2e-6));
    }
    RC_ASSERT(testing::near(parts, expected, 2e-6));
    RC_ASSERT(parts.guards_untouched());
  }
}

TEST(CrossEntropy, RefusesLabelsThatAreNotInTheVocabulary) {
  std::vector<float> losses(1);
  for (const std::int32_t label : {-100, 4}) {
    OwnedMatrix logits(1, 4);
    EXPECT_THROW(cpu::cross_entropy(logits, std::vector<std::int32_t>{label}, std::vector<float>{1.0F}, losses),
                 InternalError);
  }
}

TEST(CrossEntropy, BitsDependNeitherOnThreadsNorOnAlignment) {
  RandomStream random(2);
  const OwnedMatrix logits = normal_matrix(random, 20, 4001);
  const std::vector<std::int32_t> labels = random_labels(random, 20, 4001);
  const std::vector<float> scales = normal_vector(random, 20);
  OwnedMatrix alone = logits, apart(20, 4001, 11, 2);
  for (std::int64_t t = 0; t < 20; ++t) std::copy_n(logits.view().row(t), 4001, apart.view().row(t));
  std::vector<float> losses(20), losses_apart(20);
  with_threads(1, [&] { cpu::cross_entropy(alone, labels, scales, losses); });
  with_threads(3, [&] { cpu::cross_entropy(apart, labels, scales, losses_apart); });
  EXPECT_TRUE(testing::same_bits(apart, alone));
  EXPECT_EQ(losses, losses_apart);
}

}  // namespace
}  // namespace braid::kernels
