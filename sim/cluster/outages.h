#pragma once

#include <filesystem>
#include <optional>
#include <queue>
#include <vector>

#include "base/random.h"
#include "base/units.h"
#include "sim/cluster/gpu_pool.h"
#include "sim/cluster/moments.h"

namespace braid::sim {

/// GPUs of one node that are out of service for a time.
struct Outage {
  double from_seconds = 0, to_seconds = 0;
  NodeGpus gpus;
};

/// How often GPUs and nodes fail, each by itself: times between are exponential, and so are repairs.
struct FailureRates {
  double gpu_mtbf_seconds = kNever;   ///< mean time from a GPU's repair to its next failure
  double node_mtbf_seconds = kNever;  ///< the same of a node, with all of its GPUs
  double repair_seconds = 4 * kHour;  ///< mean

  bool any() const { return gpu_mtbf_seconds != kNever || node_mtbf_seconds != kNever; }
};

/// Outages of a file with the columns from_s, to_s, node and gpu, in any order, with others ignored; without a gpu, or
/// where it is blank, all of the node is meant. Sorted by when they begin. Throws Error "FILE:LINE: ..." for a GPU that
/// the cluster does not have and an outage that ends before it begins.
std::vector<Outage> read_outages(const std::filesystem::path& file, std::int64_t nodes, std::int64_t gpus_per_node);

/// Which GPUs are in service, over time. A GPU that is out for several reasons at a time comes back with the last.
class Outages {
 public:
  Outages() = default;
  /// Sorted by when they begin.
  explicit Outages(std::vector<Outage> recorded) : recorded_(std::move(recorded)) {}
  /// Drawn by the seed alone, from `first_seconds` on, for ever.
  Outages(const FailureRates& rates, std::int64_t nodes, std::int64_t gpus_per_node, double first_seconds,
          std::uint64_t seed);

  /// When GPUs next break or come back: never, infinity.
  double next() const;

  struct Changes {
    std::vector<NodeGpus> broken, repaired;  // that were in service; that were not
    std::int64_t outages = 0;                // that begin
  };
  /// All that happens at a moment; none before it may be left.
  Changes take(double now);

  bool any_out() const { return !ends_.empty(); }

 private:
  /// When the GPUs of an outage may come back. The queue has the first on top.
  struct End {
    double time = 0;
    NodeGpus gpus;
    bool operator<(const End& other) const {
      return time != other.time ? time > other.time : gpus.node > other.gpus.node;
    }
  };

  void draw_next();
  double& until(std::int32_t node, int gpu);
  /// GPUs that are in service.
  std::uint64_t in_service(const NodeGpus& gpus, double now);
  void begin(const Outage& outage, double now, Changes& changes);

  std::vector<Outage> recorded_;
  std::size_t next_recorded_ = 0;

  std::optional<RandomStream> random_;
  FailureRates rates_;
  std::int64_t nodes_ = 0, gpus_per_node_ = 0;
  std::optional<Outage> drawn_;
  double drawn_at_ = 0;

  std::vector<std::vector<double>> until_;  // per node and GPU; empty for nodes that never broke
  std::priority_queue<End> ends_;
};

}  // namespace braid::sim
