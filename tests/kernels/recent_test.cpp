#include "kernels/cuda/recent.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace braid::kernels::cuda {
namespace {

/// Against a list in the order of their use.
TEST(Recent, KeepsWhatWasAskedForLast) {
  RandomStream random(5);
  Recent<std::uint64_t, std::uint64_t> recent(4);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> list;  // the last used first
  for (std::uint64_t step = 0; step < 2000; ++step) {
    const std::uint64_t key = random.next_below(7);
    const auto listed = std::ranges::find(list, key, [](const auto& one) { return one.first; });
    if (random.next_below(3) == 0) {
      if (listed != list.end()) list.erase(listed);
      list.insert(list.begin(), {key, step});
      if (list.size() > 4) list.pop_back();
      EXPECT_EQ(recent.put(key, step), step);
    } else {
      const std::uint64_t* found = recent.find(key);
      ASSERT_EQ(found != nullptr, listed != list.end());
      if (!found) continue;
      EXPECT_EQ(*found, listed->second);
      std::rotate(list.begin(), listed, listed + 1);
    }
    EXPECT_EQ(recent.size(), list.size());
  }
  recent.clear();
  EXPECT_EQ(recent.size(), 0U);
}

}  // namespace
}  // namespace braid::kernels::cuda
