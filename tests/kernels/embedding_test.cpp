#include "kernels/embedding.h"

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
  cpu::embedding_forward(table, tokens, y);
  reference::embedding_forward(table, tokens, expected);
  EXPECT_TRUE(testing::same_bits(y, expected));
  EXPECT_TRUE(testing::same_bits(y.view().row_range(1, 2), table.view().row_range(10, 11)));
  EXPECT_TRUE(y.guards_untouched());
}

TEST(Embedding, RefusesTokensThatAreNotInTheTable) {
  RandomStream random(2);
  const OwnedMatrix table = normal_matrix(random, 4, 3);
  OwnedMatrix y(1, 3);
  for (const std::int32_t token : {-1, 4}) {
    EXPECT_THROW(cpu::embedding_forward(table, std::vector<std::int32_t>{token}, y), InternalError);
  }
}

}  // namespace
}  // namespace braid::kernels
