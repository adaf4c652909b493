#include "base/rooms.h"

#include <iterator>

namespace braid {

std::optional<ByteRange> Rooms::take(Bytes wanted) {
  const auto found = by_size_.lower_bound({wanted, 0});
  if (found == by_size_.end()) {
    if (end_ + wanted > size_) return std::nullopt;
    end_ += wanted;
    return ByteRange{end_ - wanted, end_};
  }
  const ByteRange room{found->second, found->second + found->first};
  remove(room);
  add({room.first + wanted, room.last});
  return ByteRange{room.first, room.first + wanted};
}

void Rooms::give_back(ByteRange room) {
  if (const auto above = free_.find(room.last); above != free_.end()) {
    room.last = above->second;
    remove({above->first, above->second});
  }
  if (const auto next = free_.lower_bound(room.first); next != free_.begin()) {
    const auto below = std::prev(next);
    if (below->second == room.first) {
      room.first = below->first;
      remove({below->first, below->second});
    }
  }
  if (room.last == end_) {
    end_ = room.first;
  } else {
    add(room);
  }
}

void Rooms::add(ByteRange room) {
  if (room.empty()) return;
  free_.emplace(room.first, room.last);
  by_size_.emplace(room.last - room.first, room.first);
}

void Rooms::remove(ByteRange room) {
  free_.erase(room.first);
  by_size_.erase({room.last - room.first, room.first});
}

}  // namespace braid
