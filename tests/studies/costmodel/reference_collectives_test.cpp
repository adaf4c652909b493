#include "studies/costmodel/reference_collectives.h"

#include <gtest/gtest.h>

#include "support.h"

namespace braid::costmodel::studies {
namespace {

TEST(ReferenceCollectives, KeepsRowsWhoseWireIsKnownAndNamesBadOnes) {
  const TestFolder folder;
  const auto write = [&](const std::string& rows) {
    return folder.write("t.csv", fmt::format("{}\n{}", kReferenceCollectiveColumns, rows));
  };
  const auto groups = read_reference_collectives(write(
      "a100_dgx,all_reduce,4,4,2048,0.02\na100_dgx,all_reduce,16,8,2048,1\na40_pairwise_nvlink,send_recv,2,2,1,1\n"
      "a100_dgx,send_recv,2,2,2048,0.01\n"));
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].points.size(), 1U);
  EXPECT_DOUBLE_EQ(groups[0].points[0].seconds, 2e-5);
  EXPECT_EQ(groups[0].link.bandwidth_bytes_per_second, 300e9);
  expect_error([&] { read_reference_collectives(write("a100_dgx,gossip,4,4,2048,0.02\n")); },
               "t.csv:2: unknown collective 'gossip'; give all_reduce or send_recv");
  expect_error([&] { read_reference_collectives(write("a100_dgx,all_reduce,4,4,2048\n")); }, "is not a row");
  expect_error([&] { read_reference_collectives(write("a100_dgx,all_reduce,4,4,x,1\n")); },
               "'x' in column 5 is no number above 0");
}

}  // namespace
}  // namespace braid::costmodel::studies
