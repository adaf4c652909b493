#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/units.h"

namespace braid {

/// From one byte, or page, to before another.
struct ByteRange {
  Bytes first = 0;
  Bytes last = 0;
  bool empty() const { return first >= last; }
};

/// Which bytes of a range are on loan. Who asks is lent of the smallest free room that is large enough, or what lies
/// beyond all that is on loan; what is given back joins the free room beside it.
class Rooms {
 public:
  explicit Rooms(Bytes size = 0) : size_(size) {}

  /// Nothing where the range has no such room.
  std::optional<ByteRange> take(Bytes wanted);
  void give_back(ByteRange room);

  /// Nothing beyond is on loan.
  Bytes end() const { return end_; }
  /// Free room below `end()`: first byte, last; no two are neighbours.
  const std::map<Bytes, Bytes>& free() const { return free_; }

 private:
  void add(ByteRange room);
  void remove(ByteRange room);

  Bytes size_ = 0, end_ = 0;
  std::map<Bytes, Bytes> free_;
  std::set<std::pair<Bytes, Bytes>> by_size_;  ///< of each room: size, first byte
};

}  // namespace braid
