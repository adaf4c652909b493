#include "kernels/embedding.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "testing.h"

namespace braid::kernels {
namespace {

using testing::normal_matrix;
using testing::OwnedMatrix;

TEST(Embedding, EqualsItsReference) {
  RandomStream random(1);
  const OwnedMatrix table = normal_matrix(random, 11, 37);
  const std::vector<std::int32_t> tokens{0, 10, 3, 3, 7};
  OwnedMatrix y(5, 37), expected(5, 37);
  cpu::embedding_forward(table, tokens, false, y);
  reference::embedding_forward(table, tokens, false, expected);
  EXPECT_TRUE(testing::same_bits(y, expected));
  EXPECT_TRUE(testing::same_bits(y.view().row_range(1, 2), table.view().row_range(10, 11)));
  cpu::embedding_forward(table, tokens, true, y);
  for (std::int64_t t = 0; t < 5; ++t) {
    for (std::int64_t i = 0; i < 37; ++i) EXPECT_EQ(y.at(t, i), 2 * expected.at(t, i));
  }
  reference::embedding_forward(table, tokens, true, expected);
  EXPECT_TRUE(testing::same_bits(y, expected));
  EXPECT_TRUE(y.guards_untouched());
}

TEST(Embedding, RefusesTokensThatAreNotInTheTable) {
  RandomStream random(2);
  const OwnedMatrix table = normal_matrix(random, 4, 3);
  OwnedMatrix y(1, 3);
  for (const std::int32_t token : {-1, 4}) {
    EXPECT_THROW(cpu::embedding_forward(table, std::vector<std::int32_t>{token}, false, y), InternalError);
  }
}

RC_GTEST_PROP(ScatterRows, UndoWhatGatheringDid, ()) {
  const std::int64_t rows = *rc::gen::inRange(1, 60), columns = *rc::gen::inRange(1, 300);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  std::vector<std::int32_t> places;
  for (std::int32_t row = 0; row < rows; ++row)
    if (*rc::gen::arbitrary<bool>()) places.push_back(row);
  const OwnedMatrix table = normal_matrix(random, rows, columns);
  OwnedMatrix gathered(std::ssize(places), columns), scattered = normal_matrix(random, rows, columns);
  cpu::embedding_forward(table, places, false, gathered);
  OwnedMatrix expected = scattered;
  cpu::scatter_rows(gathered, places, scattered);
  reference::scatter_rows(gathered, places, expected);
  RC_ASSERT(testing::same_bits(scattered, expected));
  for (const std::int32_t row : places)
    for (std::int64_t i = 0; i < columns; ++i) RC_ASSERT(scattered.at(row, i) == table.at(row, i));
  RC_ASSERT(scattered.guards_untouched());
}

}  // namespace
}  // namespace braid::kernels
