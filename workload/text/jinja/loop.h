#pragma once

#include <string_view>

#include "workload/text/jinja/value.h"

namespace braid::workload::jinja {

/// The variable `loop` within a loop.
struct Loop {
  const Items* items = nullptr;
  std::size_t index = 0;
};

/// index, index0, revindex, revindex0, first, last, length, previtem, nextitem; depth 1 and depth0 0, as of
/// every loop that is not recursive.
Value loop_attribute(const Loop& loop, std::string_view name);

}  // namespace braid::workload::jinja
