#include <map>
#include <set>
#include <tuple>

#include "sim/cluster/schedulers.h"

namespace braid::sim {
namespace {

/// Multiplexing-aware (MuxTune §6): a job joins the instance where predicted throughput rises the most by it, a new one
/// among them. Higher priorities first, within one the first submitted; whoever does not fit lets others pass. Jobs of
/// a priority above 0 have instances of their own.
class Mux final : public Scheduler {
 public:
  std::string_view name() const override { return "mux"; }
  Joining joining() const override { return Joining::throughput; }
  void submitted(const Cluster& cluster, JobIndex job) override {
    const ClusterJob& waiting = cluster.jobs()[static_cast<std::size_t>(job)];
    queues_[{-waiting.priority, waiting.gpus, waiting.kind}].insert(job);
  }

  void decide(Cluster& cluster) override {
    // What fits depends on GPUs and kind alone, and starting a job makes no other fit.
    for (auto first = queues_.begin(); first != queues_.end();) {
      auto last = first;
      while (last != queues_.end() && priority_of(*last) == priority_of(*first)) ++last;
      start_of_priority(cluster, first, last);
      first = last;
    }
  }

 private:
  using Like = std::tuple<std::int32_t, std::int32_t, KindIndex>;  // -priority, GPUs, kind
  using Queues = std::map<Like, std::set<JobIndex>>;

  static std::int32_t gpus_of(const Cluster& cluster, JobIndex job) {
    return cluster.jobs()[static_cast<std::size_t>(job)].gpus;
  }
  static std::int32_t priority_of(const Queues::value_type& queue) { return -std::get<0>(queue.first); }

  void start_of_priority(Cluster& cluster, Queues::iterator begin, Queues::iterator end) {
    const bool alone = priority_of(*begin) > 0;
    while (true) {
      std::set<JobIndex>* first = nullptr;
      for (auto queue = begin; queue != end; ++queue) {
        std::set<JobIndex>& jobs = queue->second;
        if (jobs.empty() || (first && *first->begin() < *jobs.begin())) continue;
        if (alone ? cluster.fits_alone(gpus_of(cluster, *jobs.begin())) : cluster.fits(*jobs.begin())) first = &jobs;
      }
      if (!first) return;
      const JobIndex job = *first->begin();
      first->erase(first->begin());
      alone ? cluster.start_alone(job, gpus_of(cluster, job)) : cluster.start(job);
    }
  }

  Queues queues_;
};

}  // namespace

std::unique_ptr<Scheduler> make_mux(const std::vector<ClusterJob>& /*jobs*/) {
  return std::make_unique<Mux>();
}

}  // namespace braid::sim
