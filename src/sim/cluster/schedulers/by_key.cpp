#include <functional>
#include <map>
#include <set>

#include "sim/cluster/schedulers.h"

namespace braid::sim {
namespace {

/// Never preempts: of the waiting jobs that fit the one with the least key starts, ties by row, until none fits. Only
/// the first of each number of GPUs and kind is looked at.
class ByKey final : public Scheduler {
 public:
  using Key = std::function<double(const ClusterJob&)>;

  ByKey(std::string_view name, Key key) : name_(name), key_(std::move(key)) {}

  std::string_view name() const override { return name_; }
  void submitted(const Cluster& cluster, JobIndex job) override {
    const ClusterJob& submitted = cluster.jobs()[static_cast<std::size_t>(job)];
    queues_[{submitted.gpus, submitted.kind}].emplace(key_(submitted), job);
  }
  void decide(Cluster& cluster) override {
    while (true) {
      Queue* first = nullptr;
      for (auto& [like, queue] : queues_) {
        if (!queue.empty() && (!first || *queue.begin() < *first->begin()) && cluster.fits(queue.begin()->second))
          first = &queue;
      }
      if (!first) return;
      cluster.start(first->begin()->second);
      first->erase(first->begin());
    }
  }

 private:
  using Queue = std::set<std::pair<double, JobIndex>>;

  std::string_view name_;
  Key key_;
  std::map<std::pair<std::int32_t, KindIndex>, Queue> queues_;  // by GPUs and kind
};

}  // namespace

std::unique_ptr<Scheduler> make_fcfs_any(const std::vector<ClusterJob>& /*jobs*/) {
  return std::make_unique<ByKey>("fcfs-any", [](const ClusterJob& job) { return job.submit_seconds; });
}

std::unique_ptr<Scheduler> make_sjf(const std::vector<ClusterJob>& /*jobs*/) {
  return std::make_unique<ByKey>("sjf", [](const ClusterJob& job) { return job.service_seconds; });
}

}  // namespace braid::sim
