#include "exec/buffer.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>

namespace braid::exec {
namespace {

constexpr Bytes kAlignment = 64;
constexpr Bytes kGrain = 4096;
/// A free block serves a smaller wish when at most this share of it is wasted.
constexpr double kWaste = 0.5;

/// Sizes come in sixteen steps an octave, so that microbatches of nearly the same length use the same blocks again.
Bytes rounded_up(Bytes bytes) {
  const auto least = static_cast<std::uint64_t>(std::max<Bytes>(bytes, 1));
  const auto step = std::max(static_cast<Bytes>(std::bit_floor(least) / 16), kGrain);
  return (static_cast<Bytes>(least) + step - 1) / step * step;
}

}  // namespace

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  release();
  pool_ = std::exchange(other.pool_, nullptr);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  capacity_ = std::exchange(other.capacity_, 0);
  return *this;
}

kernels::Matrix Buffer::matrix(std::int64_t rows, std::int64_t columns) const {
  BRAID_CHECK(rows * columns <= size_, "a [{}, {}] matrix in {} numbers", rows, columns, size_);
  return {data_, rows, columns};
}

void Buffer::release() {
  if (pool_) pool_->give_back(data_, capacity_);
  pool_ = nullptr;
  data_ = nullptr;
  size_ = 0;
}

BufferPool::~BufferPool() {
  for (const auto& [capacity, data] : free_) std::free(data);
}

Buffer BufferPool::take(std::int64_t numbers) {
  const Bytes wanted = rounded_up(numbers * static_cast<Bytes>(sizeof(float)));
  Buffer buffer;
  buffer.pool_ = this;
  buffer.size_ = numbers;
  const auto found = free_.lower_bound(wanted);
  if (found != free_.end() &&
      static_cast<double>(found->first - wanted) <= kWaste * static_cast<double>(found->first)) {
    buffer.capacity_ = found->first;
    buffer.data_ = found->second;
    free_.erase(found);
  } else {
    // Blocks of other sizes would only pile up: no more is held than was once on loan, or is now. The next smaller one
    // goes first, which this one outgrows.
    const Bytes most = std::max(peak_, in_use_ + wanted);
    while (!free_.empty() && held_ + wanted > most) {
      const auto above = free_.lower_bound(wanted);
      const auto outgrown = above == free_.begin() ? above : std::prev(above);
      held_ -= outgrown->first;
      std::free(outgrown->second);
      free_.erase(outgrown);
    }
    buffer.capacity_ = wanted;
    buffer.data_ = static_cast<float*>(std::aligned_alloc(kAlignment, static_cast<std::size_t>(wanted)));
    if (!buffer.data_) throw std::bad_alloc();
    held_ += wanted;
  }
  in_use_ += buffer.capacity_;
  peak_ = std::max(peak_, in_use_);
  return buffer;
}

void BufferPool::give_back(float* data, Bytes capacity) {
  in_use_ -= capacity;
  free_.emplace(capacity, data);
}

}  // namespace braid::exec
