#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace braid::kernels::cuda {

/// Values by key, of which only those that were asked for lately are kept.
template <typename Key, typename Value>
class Recent {
 public:
  /// Keeps at most so many.
  explicit Recent(std::size_t most) : most_(most) {}

  /// Null where it is not kept. Stays until another is put in.
  Value* find(const Key& key) {
    const auto known = kept_.find(key);
    if (known == kept_.end()) return nullptr;
    known->second.used = ++uses_;
    return &known->second.value;
  }
  /// In place of what the key had, or, where there is no room, of what was asked for the longest ago.
  Value& put(const Key& key, Value value) {
    kept_.erase(key);
    if (kept_.size() == most_)
      kept_.erase(std::ranges::min_element(kept_, {}, [](const auto& one) { return one.second.used; }));
    return kept_.emplace(key, Kept{std::move(value), ++uses_}).first->second.value;
  }
  void clear() { kept_.clear(); }
  std::size_t size() const { return kept_.size(); }

 private:
  struct Kept {
    Value value;
    std::int64_t used = 0;  ///< the last time
  };
  std::size_t most_;
  std::map<Key, Kept> kept_;
  std::int64_t uses_ = 0;
};

}  // namespace braid::kernels::cuda
