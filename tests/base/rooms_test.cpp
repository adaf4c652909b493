#include "base/rooms.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace braid {
namespace {

/// Against a table of bytes: nothing is lent twice, the smallest room that is large enough is taken, and it ends where
/// the last loan does.
TEST(Rooms, AreThoseOfATableOfBytes) {
  constexpr Bytes kSize = 400;
  RandomStream random(3);
  Rooms rooms(kSize);
  std::vector<bool> lent(kSize, false);
  std::vector<ByteRange> loans;
  const auto free_rooms = [&] {
    std::vector<ByteRange> found;
    for (Bytes byte = 0; byte < rooms.end(); ++byte) {
      if (lent[static_cast<std::size_t>(byte)]) continue;
      if (found.empty() || found.back().last != byte) found.push_back({byte, byte});
      ++found.back().last;
    }
    return found;
  };
  int refused = 0;
  for (int step = 0; step < 20000; ++step) {
    if (random.next_below(2) == 0 || loans.empty()) {
      const Bytes wanted = 1 + static_cast<Bytes>(random.next_below(40));
      Bytes smallest = kSize + 1;
      for (const ByteRange& room : free_rooms())
        if (room.last - room.first >= wanted) smallest = std::min(smallest, room.last - room.first);
      const Bytes end = rooms.end();
      const std::optional<ByteRange> loan = rooms.take(wanted);
      EXPECT_EQ(loan.has_value(), smallest <= kSize || end + wanted <= kSize);
      refused += loan ? 0 : 1;
      if (!loan) continue;
      EXPECT_EQ(loan->last - loan->first, wanted);
      if (smallest > kSize) {
        EXPECT_EQ(loan->first, end);
      }
      for (Bytes byte = loan->first; byte < loan->last; ++byte) {
        EXPECT_FALSE(lent[static_cast<std::size_t>(byte)]);
        lent[static_cast<std::size_t>(byte)] = true;
      }
      if (smallest <= kSize) {
        Bytes room = wanted, after = loan->last;
        for (; after < end && !lent[static_cast<std::size_t>(after)]; ++after) ++room;
        EXPECT_EQ(room, smallest);
      }
      loans.push_back(*loan);
    } else {
      const auto which = static_cast<std::size_t>(random.next_below(loans.size()));
      const ByteRange loan = loans[which];
      loans.erase(loans.begin() + static_cast<std::ptrdiff_t>(which));
      for (Bytes byte = loan.first; byte < loan.last; ++byte) lent[static_cast<std::size_t>(byte)] = false;
      rooms.give_back(loan);
    }
    Bytes last = 0;
    for (const ByteRange& loan : loans) last = std::max(last, loan.last);
    EXPECT_EQ(rooms.end(), last);
    const std::vector<ByteRange> expected = free_rooms();
    ASSERT_EQ(rooms.free().size(), expected.size());
    auto room = rooms.free().begin();
    for (const ByteRange& one : expected) {
      EXPECT_EQ(room->first, one.first);
      EXPECT_EQ(room->second, one.last);
      ++room;
    }
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace braid
