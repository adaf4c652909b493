#include "sim/cluster/recorded.h"
#include "sim/cluster/schedulers/ranked_jobs.h"

namespace braid::sim {
namespace {

using namespace testing;

// The class that docs/howto.md shows, as it stands there.
#include "howto_scheduler.inc"

TEST(Howto, ItsSchedulerStartsTheLargestJobsFirst) {
  // While the first holds all GPUs, the others come.
  const std::vector<ClusterJob> jobs = {job(0, 10, 4), job(1, 10, 1), job(2, 10, 2), job(3, 10, 3)};
  LargestFirst scheduler;
  TaskSets sets = exclusive_sets();
  const ClusterRun run = simulate_cluster(jobs, flat_pool(4), scheduler, sets);
  EXPECT_EQ(starts(run), (std::vector<double>{0, 10, 20, 10}));
}

}  // namespace
}  // namespace braid::sim
