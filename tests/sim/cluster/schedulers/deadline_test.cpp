#include <map>

#include "sim/cluster/moments.h"
#include "sim/cluster/recorded.h"
#include "sim/cluster/ticking.h"

namespace braid::sim {
namespace {

using namespace testing;

/// Whether all of these, with so many seconds left each, end in time, second by second, the earliest deadline first.
bool all_in_time(const Ticking& book, std::map<std::size_t, double> left) {
  std::vector<std::pair<double, std::size_t>> order;
  for (const auto& [j, seconds] : left) order.emplace_back(book.jobs[j].deadline_seconds, j);
  std::sort(order.begin(), order.end());
  for (double now = book.now; !order.empty(); now += 1) {
    std::int64_t free = book.gpus;
    for (const auto& [deadline, j] : order) {
      if (left[j] <= 0 || book.jobs[j].gpus > free) continue;
      free -= book.jobs[j].gpus;
      left[j] -= 1;
    }
    for (const auto& [deadline, j] : order) {
      if (left[j] > 0 && now + 1 >= deadline) return false;
    }
    std::erase_if(order, [&](const auto& each) { return left[each.second] <= 0; });
  }
  return true;
}

RC_GTEST_PROP(Deadline, IsEdfOfTheAdmittedWhoAllMeetTheirDeadlines, ()) {
  const std::int64_t gpus = *rc::gen::inRange(1, 9);
  std::vector<ClusterJob> jobs = any_jobs(static_cast<int>(gpus));
  for (ClusterJob& each : jobs) {
    if (*rc::gen::inRange(0, 4) == 0) each.deadline_seconds = kNever;
  }
  Ticking book{jobs, gpus, 1};
  std::vector<bool> is_admitted(jobs.size(), false), is_asked(jobs.size(), false);
  book.before = [&] {
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      if (is_asked[j] || !book.is_there(j)) continue;
      is_asked[j] = true;
      if (jobs[j].deadline_seconds == kNever || book.now + jobs[j].service_seconds > jobs[j].deadline_seconds) continue;
      std::map<std::size_t, double> left = {{j, jobs[j].service_seconds}};
      for (std::size_t i = 0; i < jobs.size(); ++i) {
        if (is_admitted[i] && book.is_there(i)) left[i] = jobs[i].service_seconds - book.attained[i];
      }
      is_admitted[j] = all_in_time(book, left);
    }
  };
  book.rank = [&](std::size_t j) { return std::pair(is_admitted[j] ? jobs[j].deadline_seconds : kNever, 0.0); };
  book.run();
  const ClusterRun made = run(jobs, gpus, "deadline");
  RC_ASSERT(finishes(made) == book.finish);
  for (std::size_t j = 0; j < jobs.size(); ++j)
    RC_ASSERT(!is_admitted[j] || made.outcomes[j].finish_seconds <= jobs[j].deadline_seconds);
}

TEST(Deadline, LetsNobodyInWhoWouldMakeOthersLate) {
  std::vector<ClusterJob> jobs = {job(0, 10, 2), job(1, 5, 2), job(2, 5, 2), job(3, 4, 1)};
  jobs[0].deadline_seconds = 17;
  jobs[1].deadline_seconds = 8;
  jobs[2].deadline_seconds = 9;  // alone it would be in time; the second would not
  const ClusterRun made = run(jobs, 2, "deadline");
  EXPECT_EQ(finishes(made), (std::vector<double>{15, 6, 20, 24}));
}

TEST(Deadline, WithoutDeadlinesJobsGoInTheOrderOfSubmission) {
  const ClusterRun made = run({job(0, 10), job(1, 5), job(2, 1)}, 1, "deadline");
  EXPECT_EQ(starts(made), (std::vector<double>{0, 10, 15}));
}

}  // namespace
}  // namespace braid::sim
