#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid::sim {

/// How a job's GPUs are chosen among nodes that have enough of them.
enum class Placement : std::uint8_t {
  packed,  ///< the node with the fewest free GPUs that are enough (best fit)
  spread,  ///< the node with the most free GPUs (worst fit)
  frag,    ///< the node where the fewest GPUs become useless to jobs of the sizes there are (FGD, ATC'23)
};

/// "packed", "spread", "frag". Throws Error for another word, which lists these.
Placement parse_placement(const std::string& word);
std::string_view name(Placement placement);

/// As many as NodeGpus has bits.
inline constexpr int kMostGpusInNode = 64;

/// GPUs of one node, a bit each.
struct NodeGpus {
  std::int32_t node = 0;
  std::uint64_t gpus = 0;
};
using GpuSet = std::vector<NodeGpus>;

/// Which GPUs of a cluster are free. A gang of GPUs that fits in a node is given one node, a larger one whole nodes and
/// the rest of it in one more; in a flat pool any GPUs will do.
class GpuPool {
 public:
  /// Throws Error for a node of no GPUs, or more than kMostGpusInNode.
  static void check_node(std::int64_t gpus);
  /// Throws Error likewise, and for no nodes.
  GpuPool(std::int64_t nodes, std::int64_t gpus_per_node, bool flat, Placement placement);

  /// How often jobs of each number of GPUs come (relative), for Placement::frag and `fragmented`.
  void expect(std::vector<std::pair<std::int32_t, double>> sizes) { sizes_ = std::move(sizes); }

  /// In service.
  std::int64_t size() const { return nodes() * gpus_per_node_ - broken_; }
  std::int64_t broken() const { return broken_; }
  std::int64_t free() const { return total_free_; }
  std::int64_t nodes() const { return static_cast<std::int64_t>(free_.size()); }
  std::int64_t gpus_per_node() const { return gpus_per_node_; }
  /// Free GPUs of nodes that have too few of them for the next job, as far as that is expected; none in a flat pool.
  /// O(GPUs of a node).
  double fragmented() const;

  /// Whether so many fit now; could ever fit, were all free and in service.
  bool fits(std::int64_t gpus) const;
  bool could_fit(std::int64_t gpus) const { return gpus >= 1 && gpus <= nodes() * gpus_per_node_; }
  /// How many gangs of so many would fit, were all free that are in service.
  std::int64_t room_for(std::int64_t gpus) const;

  /// Takes GPUs that are free; `fits(gpus)` must hold.
  GpuSet take(std::int64_t gpus);
  /// Whether so many would fit if these were given back.
  bool fits_in_place_of(const GpuSet& gpus, std::int64_t wanted);
  /// Gives back what was taken. A GPU given twice is an internal error.
  void give(const GpuSet& gpus);
  /// Takes GPUs out of service, free ones alone, and brings them back.
  void break_down(const NodeGpus& gpus);
  void repair(const NodeGpus& gpus);
  std::uint64_t free_of(std::int64_t node) const { return free_[static_cast<std::size_t>(node)]; }

 private:
  std::int64_t free_count(std::int64_t node) const;
  void change(std::int64_t node, std::uint64_t free);
  void set_broken(std::int64_t node, std::uint64_t broken);
  std::int64_t nodes_with(std::int64_t free) const {
    return static_cast<std::int64_t>(by_free_[static_cast<std::size_t>(free)].size());
  }
  /// A free count >= `gpus` by the placement's rule, 0 when none is.
  std::int64_t choose_count(std::int64_t gpus) const;
  double useless(std::int64_t free) const;
  void take_from(std::int64_t node, std::int64_t gpus, GpuSet& taken);

  std::int64_t gpus_per_node_;
  bool flat_;
  Placement placement_;
  std::vector<std::uint64_t> free_, broken_of_;     // per node
  std::vector<std::vector<std::int32_t>> by_free_;  // per count of free GPUs, nodes in no order
  std::vector<std::int32_t> place_;                 // per node, where in by_free_
  std::vector<std::pair<std::int32_t, double>> sizes_;
  std::vector<std::int64_t> nodes_in_service_;  // per count of GPUs in service
  std::int64_t total_free_ = 0, broken_ = 0;
};

}  // namespace braid::sim
