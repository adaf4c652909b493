#pragma once

#include <cstdint>
#include <memory>
#include <new>

namespace braid::kernels::cpu {

/// Memory for intermediate numbers that is kept between calls and only ever grows: one a thread and use, as a
/// `thread_local`. What a call finds in it is undefined.
class Scratch {
 public:
  /// Room for `count` numbers, aligned to a cache line; good until the next call.
  float* at_least(std::int64_t count) {
    if (count > capacity_) {
      memory_.reset();
      memory_.reset(static_cast<float*>(::operator new(static_cast<std::size_t>(count) * sizeof(float), kAlignment)));
      capacity_ = count;
    }
    return memory_.get();
  }
  /// What the last call gave.
  const float* numbers() const { return memory_.get(); }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(float* memory) const { ::operator delete(memory, kAlignment); }
  };
  std::unique_ptr<float, Free> memory_;
  std::int64_t capacity_ = 0;
};

/// Hands out consecutive pieces of one allocation, each aligned like the whole. Made without memory it only counts.
class Pieces {
 public:
  explicit Pieces(float* memory = nullptr) : memory_(memory) {}
  float* take(std::int64_t count) {
    float* piece = memory_ ? memory_ + taken_ : nullptr;
    taken_ += (count + 15) / 16 * 16;
    return piece;
  }
  std::int64_t taken() const { return taken_; }

 private:
  float* memory_;
  std::int64_t taken_ = 0;
};

}  // namespace braid::kernels::cpu
