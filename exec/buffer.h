#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/rooms.h"
#include "base/units.h"
#include "exec/ranks/communicator.h"
#include "kernels/device.h"

namespace braid::exec {

class BufferPool;

/// Numbers on loan from a pool, of the device's type of activations or f32; given back when it goes. Aligned to 64
/// bytes. The content is undefined at first.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { release(); }

  float* data() const { return data_; }
  std::int64_t size() const { return size_; }
  costmodel::DataType type() const { return type_; }
  kernels::Matrix matrix(std::int64_t rows, std::int64_t columns) const;
  /// All of it: as one row, or, of f32, as a vector.
  kernels::Matrix row() const { return matrix(1, size_); }
  kernels::Vector vector() const;
  /// As so many doubles, of which each takes the place of two f32 numbers.
  kernels::BasicVector<double> doubles() const { return {reinterpret_cast<double*>(data_), size_ / 2}; }
  /// For a message.
  Numbers numbers() const { return {data_, size_, type_}; }
  void release();

 private:
  friend class BufferPool;
  BufferPool* pool_ = nullptr;
  float* data_ = nullptr;
  std::int64_t size_ = 0;
  costmodel::DataType type_ = costmodel::DataType::f32;
  Bytes capacity_ = 0;
};

/// Lends buffers out of one reserved range of addresses. What is given back joins the free room beside it and stays
/// with the process, for the next who asks: page faults cost more than arithmetic here. Yet of the host's memory no
/// more pages are held than ever were on loan at once, so that what a run takes can be told from its takes alone: pages
/// of free room go back to the system before fresh ones are touched beyond that. A GPU's go back when it has no others,
/// as all that was launched must end first. One thread at a time; outlives its buffers.
class BufferPool {
 public:
  explicit BufferPool(kernels::Device& device);
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  /// Whose memory it lends.
  kernels::Device& device() const { return device_; }

  /// So many activations.
  Buffer take(std::int64_t numbers) { return take(numbers, device_.activations()); }
  /// So many numbers of statistics, sums and the like, which are f32 on every device.
  Buffer take_f32(std::int64_t numbers) { return take(numbers, costmodel::DataType::f32); }
  /// Bytes on loan, and the most that ever were.
  Bytes in_use() const { return in_use_; }
  Bytes peak() const { return peak_; }
  /// Bytes of the pages that may be resident: of the host's memory at most `peak()`, and a page or two for each buffer,
  /// as neighbours share pages.
  Bytes held() const;

 private:
  friend class Buffer;
  Buffer take(std::int64_t numbers, costmodel::DataType type);
  void give_back(float* data, Bytes capacity);
  void touch(ByteRange wanted, Bytes most);
  void commit(ByteRange pages);
  bool give_free_pages_back(std::int64_t excess);
  void discard(ByteRange pages, std::int64_t& excess);

  kernels::Device& device_;
  char* base_ = nullptr;
  Bytes reserved_ = 0;
  Rooms rooms_;
  std::vector<bool> touched_;  ///< per page: whether it may be resident
  std::int64_t held_pages_ = 0;
  Bytes in_use_ = 0;
  Bytes peak_ = 0;
};

}  // namespace braid::exec
