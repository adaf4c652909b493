#include <algorithm>
#include <deque>

#include "sim/cluster/schedulers.h"

namespace braid::sim {
namespace {

class Fcfs final : public Scheduler {
 public:
  std::string_view name() const override { return "fcfs"; }
  void submitted(const Cluster& /*cluster*/, JobIndex job) override { queue_.push_back(job); }
  void interrupted(const Cluster& /*cluster*/, JobIndex job) override {
    queue_.insert(std::lower_bound(queue_.begin(), queue_.end(), job), job);
  }
  void decide(Cluster& cluster) override {
    for (; !queue_.empty() && cluster.fits(queue_.front()); queue_.pop_front()) cluster.start(queue_.front());
  }

 private:
  std::deque<JobIndex> queue_;  // ascending
};

}  // namespace

std::unique_ptr<Scheduler> make_fcfs(const std::vector<ClusterJob>& /*jobs*/) {
  return std::make_unique<Fcfs>();
}

}  // namespace braid::sim
