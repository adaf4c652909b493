#include "exec/ranks/thread_ranks.h"

#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "base/error.h"
#include "exec/devices.h"

namespace braid::exec {
namespace {

const kernels::Event& now() {
  static const std::unique_ptr<kernels::Event> ended = cpu_device().record();
  return *ended;
}

void finish(Request& request) {
  while (!request.done()) std::this_thread::yield();
}

TEST(ThreadRanks, MessagesOfAPathComeInTheirOrderWhicheverIsAskedFirst) {
  run_on_threads(3, [](Communicator& ranks) {
    const int next = (ranks.rank() + 1) % 3, before = (ranks.rank() + 2) % 3;
    std::vector<std::vector<float>> sent, got(6, std::vector<float>(5));
    std::vector<std::unique_ptr<Request>> requests;
    for (int i = 0; i < 6; ++i)
      requests.push_back(ranks.receive(numbers_of(got[static_cast<std::size_t>(i)]), before, i % 2, now()));
    for (int i = 0; i < 6; ++i) {
      sent.emplace_back(5, static_cast<float>(10 * ranks.rank() + i));
      finish(*ranks.send(numbers_of(sent.back()), next, i % 2, now()));
    }
    for (std::size_t i = requests.size(); i-- > 0;) finish(*requests[i]);
    for (int i = 0; i < 6; ++i)
      EXPECT_EQ(got[static_cast<std::size_t>(i)], std::vector<float>(5, static_cast<float>(10 * before + i)));
  });
}

TEST(ThreadRanks, BytesDoNotMixWithNumbers) {
  run_on_threads(2, [](Communicator& ranks) {
    std::vector<float> number = {7};
    if (ranks.rank() == 0) {
      ranks.send_bytes("first", 1);
      ranks.send(numbers_of(number), 1, 0, now());
      ranks.send_bytes("", 1);
    } else {
      number[0] = 0;
      EXPECT_EQ(ranks.receive_bytes(0), "first");
      EXPECT_EQ(ranks.receive_bytes(0), "");
      finish(*ranks.receive(numbers_of(number), 0, 0, now()));
      EXPECT_EQ(number[0], 7);
    }
  });
}

TEST(ThreadRanks, GroupsMeetAsOftenAsTheyLikeAndSumInTheOrderOfRanks) {
  constexpr int kRanks = 4;
  run_on_threads(kRanks, [](Communicator& ranks) {
    const std::vector<int> odd = {1, 3}, all = {0, 1, 2, 3};
    const auto of_odd = ranks.make_group(odd), of_all = ranks.make_group(all);
    EXPECT_EQ(of_odd != nullptr, ranks.rank() % 2 == 1);
    // Of numbers that do not add up alike in any order.
    const std::vector<float> magnitudes = {1e8F, 1, -1e8F, 1e-3F};
    float expected = 0;
    for (const float magnitude : magnitudes) expected += magnitude;
    for (int round = 0; round < 50; ++round) {
      std::vector<float> numbers(3, magnitudes[static_cast<std::size_t>(ranks.rank())]), both(1, 1.0F);
      const auto sum = of_all->all_reduce(numbers_of(numbers), now());
      if (of_odd) finish(*of_odd->all_reduce(numbers_of(both), now()));
      finish(*sum);
      EXPECT_EQ(numbers, std::vector<float>(3, expected));
      EXPECT_EQ(both[0], of_odd ? 2 : 1);
    }
    std::vector<double> mine(static_cast<std::size_t>(ranks.rank()), ranks.rank()), everyones(6);
    finish(*of_all->all_gather(mine, std::vector<int>{0, 1, 2, 3}, everyones));
    EXPECT_EQ(everyones, (std::vector<double>{1, 2, 2, 3, 3, 3}));
    std::vector<double> numbers = {1.0, static_cast<double>(ranks.rank())};
    ranks.sum(numbers);
    EXPECT_EQ(numbers, (std::vector<double>{4, 6}));
    std::vector<std::byte> bytes(2, static_cast<std::byte>(ranks.rank() == 0 ? 9 : 0));
    ranks.broadcast(bytes);
    EXPECT_EQ(bytes, std::vector<std::byte>(2, std::byte{9}));
    const std::vector<std::string> gathered = ranks.gather(std::string(1, static_cast<char>('a' + ranks.rank())));
    EXPECT_EQ(gathered, ranks.rank() == 0 ? (std::vector<std::string>{"a", "b", "c", "d"}) : gathered);
    EXPECT_EQ(gathered.size(), ranks.rank() == 0 ? 4U : 0U);
    ranks.barrier();
  });
}

TEST(ThreadRanks, WhoWaitsForARankThatThrewIsToldAndTheErrorComesOut) {
  for (const int waits_for : {0, 1, 2, 3}) {
    try {
      run_on_threads(3, [&](Communicator& ranks) {
        if (ranks.rank() == 1) throw error("rank 1 does not like this");
        std::vector<float> number(1);
        if (waits_for == 0) ranks.barrier();
        if (waits_for == 1) finish(*ranks.receive(numbers_of(number), 1, 0, now()));
        if (waits_for == 2) ranks.receive_bytes(1);
        if (waits_for == 3) finish(*ranks.make_group(std::vector<int>{0, 1, 2})->all_reduce(numbers_of(number), now()));
        ADD_FAILURE() << "rank " << ranks.rank() << " went on";
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& thrown) {
      EXPECT_STREQ(thrown.what(), "rank 1 does not like this");
    }
  }
}

}  // namespace
}  // namespace braid::exec
