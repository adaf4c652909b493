#include "sim/cluster/study/drawn_terms.h"

#include <gtest/gtest.h>

namespace braid::sim {
namespace {

std::vector<ClusterJob> jobs_of(std::size_t count) {
  std::vector<ClusterJob> jobs(count);
  for (std::size_t j = 0; j < count; ++j) {
    jobs[j].submit_seconds = static_cast<double>(j);
    jobs[j].service_seconds = 3600;
    jobs[j].reference_seconds = 1000;
    jobs[j].gpus = 4;
    jobs[j].priority = 7;
  }
  return jobs;
}

TEST(DrawnTerms, AreSpreadEvenlyAndDependOnSeedAndRowAlone) {
  constexpr std::size_t kJobs = 4000;
  std::vector<ClusterJob> jobs = jobs_of(kJobs);
  jobs[5].deadline_seconds = 17;
  const DrawnTerms terms{
      .deadline_slack = DrawnTerms::Range{2, 4}, .budget_slack = DrawnTerms::Range{0.5, 1.5}, .priorities = 4};
  draw_terms(jobs, terms, 3);
  EXPECT_EQ(jobs[5].deadline_seconds, 17);
  double slack = 0, budget = 0, priority = 0;
  for (std::size_t j = 0; j < kJobs; ++j) {
    if (j == 5) continue;
    const double after = jobs[j].deadline_seconds - jobs[j].submit_seconds;
    EXPECT_TRUE(after >= 2000 && after <= 4000);
    EXPECT_TRUE(jobs[j].budget >= 2 && jobs[j].budget <= 6);
    EXPECT_TRUE(jobs[j].priority >= 0 && jobs[j].priority <= 3);
    slack += after / kJobs, budget += jobs[j].budget / kJobs;
    priority += static_cast<double>(jobs[j].priority) / kJobs;
  }
  EXPECT_NEAR(slack, 3000, 40);
  EXPECT_NEAR(budget, 4, 0.08);
  EXPECT_NEAR(priority, 1.5, 0.08);

  // What is drawn of one does not depend on the others, nor on how many jobs there are.
  std::vector<ClusterJob> fewer = jobs_of(10);
  draw_terms(fewer, {.deadline_slack = DrawnTerms::Range{2, 4}, .budget_slack = {}, .priorities = 0}, 3);
  EXPECT_EQ(fewer[9].deadline_seconds, jobs[9].deadline_seconds);
  EXPECT_EQ(fewer[9].priority, 7);
  EXPECT_EQ(fewer[9].budget, ClusterJob().budget);
}

}  // namespace
}  // namespace braid::sim
