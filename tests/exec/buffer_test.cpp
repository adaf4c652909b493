#include "exec/buffer.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "exec/devices.h"
#include "kernels/host_memory.h"
#include "kernels/process_memory.h"

namespace braid::exec {
namespace {

constexpr Bytes kPage = 4096;

/// A buffer and what was written all over it.
struct Loan {
  Buffer buffer;
  float mark = 0;

  bool is_whole() const {
    return std::all_of(buffer.vector().begin(), buffer.vector().end(), [&](float number) { return number == mark; });
  }
};

/// Takes and gives back buffers of unlike sizes in any order, each written all over; calls `check` after every take.
template <typename Check>
void lend_at_random(BufferPool& pool, int takes, std::uint64_t largest, const Check& check) {
  RandomStream random(11);
  std::vector<Loan> loans;
  for (int i = 0; i < takes; ++i) {
    while (!loans.empty() && random.next_below(100) < 48) {
      const auto gone = loans.begin() + static_cast<std::ptrdiff_t>(random.next_below(loans.size()));
      EXPECT_TRUE(gone->is_whole()) << "somebody else wrote here";
      std::swap(*gone, loans.back());
      loans.pop_back();
    }
    Loan& loan = loans.emplace_back(
        Loan{pool.take(1 + static_cast<std::int64_t>(random.next_below(largest))), static_cast<float>(i)});
    std::fill(loan.buffer.vector().begin(), loan.buffer.vector().end(), loan.mark);
    check(loans);
  }
}

TEST(BufferPool, BuffersOnLoanLieApartAndOnCacheLines) {
  BufferPool pool(cpu_device());
  lend_at_random(pool, 2000, 20000, [](const std::vector<Loan>& loans) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(loans.back().buffer.data()) % 64, 0);
  });
}

TEST(BufferPool, OnLoanIsTheSumOfTheBuffersAndNothingAfterTheLast) {
  BufferPool pool(cpu_device());
  Bytes peak = 0;
  lend_at_random(pool, 500, 20000, [&](const std::vector<Loan>& loans) {
    Bytes sum = 0;
    for (const Loan& loan : loans) sum += (loan.buffer.size() * static_cast<Bytes>(sizeof(float)) + 63) / 64 * 64;
    EXPECT_EQ(pool.in_use(), sum);
    peak = std::max(peak, sum);
    EXPECT_EQ(pool.peak(), peak);
  });
  EXPECT_EQ(pool.in_use(), 0);
}

TEST(BufferPool, HoldsNoMorePagesThanWereOnLoanAtOnce) {
  BufferPool pool(cpu_device());
  std::size_t most = 0;
  lend_at_random(pool, 2000, 50000, [&](const std::vector<Loan>& loans) {
    most = std::max(most, loans.size());
    EXPECT_LE(pool.held(), pool.peak() + 2 * kPage * static_cast<Bytes>(most));
  });
  EXPECT_GE(pool.held() + kPage, pool.peak());
}

TEST(BufferPool, IsResidentWithWhatItHolds) {
  const Bytes before = kernels::resident_memory();
  BufferPool pool(cpu_device());
  Bytes most = 0;
  lend_at_random(pool, 300, 2'000'000,
                 [&](const std::vector<Loan>&) { most = std::max(most, kernels::resident_memory()); });
#ifdef __SANITIZE_ADDRESS__
  // Its shadow is resident too, a byte for eight, and it keeps what was freed for a while.
  const Bytes other = pool.peak() / 4 + (Bytes{16} << 20);
#else
  const Bytes other = Bytes{2} << 20;
#endif
  EXPECT_LE(most - before, pool.peak() + other);
  EXPECT_GE(kernels::resident_memory() - before, pool.held() - other);
}

/// Memory that is not the host's, of so many pages.
class DeviceOfPages final : public kernels::HostMemoryDevice {
 public:
  explicit DeviceOfPages(std::size_t most) : most_(most) {}
  std::string_view name() const override { return "pages"; }
  const kernels::Kernels& kernels() const override { return cpu_device().kernels(); }
  std::vector<std::string> library_versions() const override { return {}; }
  bool host_memory() const override { return false; }
  void commit(void* first, Bytes bytes) override {
    for (Bytes place = 0; place < bytes; place += kPage) {
      const void* page = static_cast<char*>(first) + place;
      if (mapped_.size() == most_ && !mapped_.contains(page)) throw Failure("no pages are left");
      mapped_.insert(page);
    }
  }
  void discard(void* first, Bytes bytes) override {
    ++discards;
    for (Bytes place = 0; place < bytes; place += kPage) mapped_.erase(static_cast<char*>(first) + place);
    HostMemoryDevice::discard(first, bytes);
  }
  std::int64_t discards = 0;

 private:
  std::size_t most_;
  std::set<const void*> mapped_;
};

TEST(BufferPool, GivesPagesOfADeviceBackWhenItHasNoOthers) {
  constexpr std::uint64_t kLargest = 20000;
  std::size_t held_pages = 0;
  {
    DeviceOfPages large(std::size_t{1} << 20);
    BufferPool pool(large);
    lend_at_random(pool, 2000, kLargest, [](const std::vector<Loan>&) {});
    EXPECT_EQ(large.discards, 0);
    EXPECT_GT(pool.held(), pool.peak());
    held_pages = static_cast<std::size_t>(pool.held() / kPage);
  }
  DeviceOfPages small(held_pages - 8);
  BufferPool pool(small);
  lend_at_random(pool, 2000, kLargest, [](const std::vector<Loan>&) {});
  EXPECT_GT(small.discards, 0);

  DeviceOfPages none(4);
  BufferPool short_of_pages(none);
  const Buffer taken = short_of_pages.take(3 * kPage / 4);
  EXPECT_THROW(short_of_pages.take(3 * kPage / 4), Failure);
}

TEST(BufferPool, GivesTheSameRoomAgain) {
  BufferPool pool(cpu_device());
  const Buffer below = pool.take(1000);
  float* first = pool.take(5000).data();
  EXPECT_EQ(pool.take(5000).data(), first);
  EXPECT_EQ(pool.take(4000).data(), first);
  EXPECT_EQ(pool.take(6000).data(), first) << "free room grows together";
}

}  // namespace
}  // namespace braid::exec
