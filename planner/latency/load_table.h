#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>

#include "costmodel/work/operators.h"

namespace braid::planner {

/// Gives loads numbers, like ones the same, so that questions about several of them are short. Not for concurrent use.
class LoadTable {
 public:
  /// Of the load with so many scored rows in place of its own. It is only copied when it is new.
  std::int32_t number(const costmodel::MicrobatchLoad& load, std::int64_t scored);
  /// Stays where it is.
  const costmodel::MicrobatchLoad& operator[](std::int32_t number) const {
    return loads_[static_cast<std::size_t>(number)];
  }

 private:
  std::deque<costmodel::MicrobatchLoad> loads_;
  std::unordered_multimap<std::size_t, std::int32_t> numbers_;  // by hash
};

}  // namespace braid::planner
