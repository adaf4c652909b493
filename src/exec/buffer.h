#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/units.h"
#include "kernels/matrix.h"

namespace braid::exec {

class BufferPool;

/// f32 numbers on loan from a pool; given back when it goes. Aligned to 64 bytes. The content is undefined at first.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { release(); }

  float* data() const { return data_; }
  std::int64_t size() const { return size_; }
  kernels::Matrix matrix(std::int64_t rows, std::int64_t columns) const;
  std::span<float> span() const { return {data_, static_cast<std::size_t>(size_)}; }
  void release();

 private:
  friend class BufferPool;
  BufferPool* pool_ = nullptr;
  float* data_ = nullptr;
  std::int64_t size_ = 0;
  Bytes capacity_ = 0;
};

/// Keeps what is given back, for the next who asks for about as much: page faults cost more than arithmetic here.
/// One thread at a time; outlives its buffers.
class BufferPool {
 public:
  BufferPool() = default;
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  Buffer take(std::int64_t numbers);
  /// Bytes on loan, and the most that ever were.
  Bytes in_use() const { return in_use_; }
  Bytes peak() const { return peak_; }

 private:
  friend class Buffer;
  void give_back(float* data, Bytes capacity);

  std::multimap<Bytes, float*> free_;
  Bytes held_ = 0;
  Bytes in_use_ = 0;
  Bytes peak_ = 0;
};

}  // namespace braid::exec
