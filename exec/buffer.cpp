#include "exec/buffer.h"

#include <algorithm>
#include <new>

#include "base/error.h"

namespace braid::exec {
namespace {

constexpr Bytes kAlignment = 64;
constexpr Bytes kPage = kernels::Device::kPage;

Bytes rounded_up(Bytes bytes, Bytes step) {
  return (bytes + step - 1) / step * step;
}

}  // namespace

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  release();
  pool_ = std::exchange(other.pool_, nullptr);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  type_ = other.type_;
  capacity_ = std::exchange(other.capacity_, 0);
  return *this;
}

kernels::Matrix Buffer::matrix(std::int64_t rows, std::int64_t columns) const {
  BRAID_CHECK(rows * columns <= size_, "a [{}, {}] matrix in {} numbers", rows, columns, size_);
  return {data_, rows, columns, columns, type_};
}

kernels::Vector Buffer::vector() const {
  BRAID_CHECK(type_ == costmodel::DataType::f32, "{} activations as numbers in f32", size_);
  return {data_, size_};
}

void Buffer::release() {
  if (pool_) pool_->give_back(data_, capacity_);
  pool_ = nullptr;
  data_ = nullptr;
  size_ = 0;
}

/// Addresses cost nothing, but the system may grant fewer than would never run out.
BufferPool::BufferPool(kernels::Device& device) : device_(device) {
  constexpr Bytes kMost = Bytes{1} << 42, kLeast = Bytes{1} << 30;
  for (reserved_ = kMost; reserved_ >= kLeast; reserved_ /= 2) {
    base_ = static_cast<char*>(device_.reserve(reserved_));
    if (!base_) continue;
    rooms_ = Rooms(reserved_);
    return;
  }
  throw std::bad_alloc();
}

BufferPool::~BufferPool() {
  device_.release(base_, reserved_);
}

Bytes BufferPool::held() const {
  return held_pages_ * kPage;
}

Buffer BufferPool::take(std::int64_t numbers, costmodel::DataType type) {
  const Bytes wanted = rounded_up(std::max<Bytes>(numbers * costmodel::bytes_of(type), 1), kAlignment);
  const std::optional<ByteRange> place = rooms_.take(wanted);
  if (!place) throw std::bad_alloc();
  in_use_ += wanted;
  peak_ = std::max(peak_, in_use_);
  touch(*place, rounded_up(peak_, kPage));
  Buffer buffer;
  buffer.pool_ = this;
  buffer.size_ = numbers;
  buffer.type_ = type;
  buffer.capacity_ = wanted;
  buffer.data_ = reinterpret_cast<float*>(base_ + place->first);
  return buffer;
}

/// Counts the pages of `wanted` as resident, and gives free ones back as long as more than `most` bytes would be.
void BufferPool::touch(ByteRange wanted, Bytes most) {
  const ByteRange pages{wanted.first / kPage, rounded_up(wanted.last, kPage) / kPage};
  if (pages.last > std::ssize(touched_)) touched_.resize(static_cast<std::size_t>(pages.last), false);
  const auto first = touched_.begin() + pages.first, last = touched_.begin() + pages.last;
  const std::int64_t fresh = std::count(first, last, false);
  if (fresh > 0) commit(pages);
  held_pages_ += fresh;
  std::fill(first, last, true);
  // Where the host would wait for the device, its memory is kept as long as there is more.
  if (device_.host_memory()) give_free_pages_back(held_pages_ - most / kPage);
}

void BufferPool::commit(ByteRange pages) {
  char* const first = base_ + pages.first * kPage;
  const Bytes bytes = (pages.last - pages.first) * kPage;
  try {
    device_.commit(first, bytes);
  } catch (const Failure&) {
    if (!give_free_pages_back(held_pages_)) throw;
    device_.commit(first, bytes);
  }
}

/// At most so many; from the top, so that what is on loan gathers below. Whether there were any.
bool BufferPool::give_free_pages_back(std::int64_t excess) {
  const std::int64_t held = held_pages_;
  discard({rounded_up(rooms_.end(), kPage) / kPage, std::ssize(touched_)}, excess);
  const std::map<Bytes, Bytes>& free = rooms_.free();
  for (auto room = free.rbegin(); room != free.rend() && excess > 0; ++room)
    discard({rounded_up(room->first, kPage) / kPage, room->second / kPage}, excess);
  return held_pages_ < held;
}

/// Gives at most `excess` resident pages back, the last first, and takes them off it.
void BufferPool::discard(ByteRange pages, std::int64_t& excess) {
  while (!pages.empty() && excess > 0) {
    const auto resident = [&](Bytes page) { return touched_[static_cast<std::size_t>(page)]; };
    while (!pages.empty() && !resident(pages.last - 1)) --pages.last;
    const Bytes last = pages.last;
    for (; !pages.empty() && resident(pages.last - 1) && excess > 0; --pages.last) {
      touched_[static_cast<std::size_t>(pages.last - 1)] = false;
      --held_pages_;
      --excess;
    }
    if (last > pages.last) device_.discard(base_ + pages.last * kPage, (last - pages.last) * kPage);
  }
}

void BufferPool::give_back(float* data, Bytes capacity) {
  in_use_ -= capacity;
  const Bytes first = reinterpret_cast<char*>(data) - base_;
  rooms_.give_back({first, first + capacity});
}

}  // namespace braid::exec
