#include "base/parallel.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

/// The test's number of threads, and the old one when it ends.
class Threads {
 public:
  explicit Threads(int count) : before_(thread_count()) { set_thread_count(count); }
  ~Threads() { set_thread_count(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

TEST(ParallelFor, DoesEveryIndexOnceOnAnyNumberOfThreads) {
  for (const int threads : {1, 2, 5}) {
    const Threads scope(threads);
    EXPECT_EQ(thread_count(), threads);
    for (const std::int64_t count : {0, 1, 7, 1000}) {
      std::vector<int> visits(static_cast<std::size_t>(count));
      parallel_for(count, 1, [&](std::int64_t i) { ++visits[static_cast<std::size_t>(i)]; });
      EXPECT_EQ(visits, std::vector<int>(static_cast<std::size_t>(count), 1));
    }
  }
}

TEST(ParallelFor, FewItemsStayOnTheCallingThread) {
  const Threads scope(4);
  const auto self = omp_get_thread_num();
  std::atomic<int> elsewhere = 0;
  parallel_for(9, 10, [&](std::int64_t) { elsewhere += omp_get_num_threads() != 1 || omp_get_thread_num() != self; });
  EXPECT_EQ(elsewhere, 0);
}

TEST(ParallelFor, AnExceptionOfABodyComesOutAndTheOthersAreDone) {
  for (const int threads : {1, 2, 5}) {
    const Threads scope(threads);
    std::atomic<int> done = 0;
    const auto run = [&] {
      parallel_for(100, 1, [&](std::int64_t i) {
        if (i % 10 == 3) throw std::out_of_range("three");
        ++done;
      });
    };
    EXPECT_THROW(run(), std::out_of_range);
    EXPECT_EQ(done, 90);
  }
}

TEST(ParallelFor, TheKindAndMessageOfTheExceptionAreKept) {
  const Threads scope(2);
  try {
    parallel_for(4, 1, [](std::int64_t) { throw std::domain_error("lost rank"); });
    FAIL() << "no exception";
  } catch (const std::domain_error& failure) {
    EXPECT_STREQ(failure.what(), "lost rank");
  }
}

}  // namespace
}  // namespace braid
