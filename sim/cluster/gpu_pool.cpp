#include "sim/cluster/gpu_pool.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"
#include "base/named.h"

namespace braid::sim {
namespace {

std::uint64_t lowest(std::uint64_t gpus, std::int64_t count) {
  std::uint64_t taken = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t gpu = gpus & (~gpus + 1);
    taken |= gpu;
    gpus ^= gpu;
  }
  return taken;
}

}  // namespace

Placement parse_placement(const std::string& word) {
  constexpr Placement kPlacements[] = {Placement::packed, Placement::spread, Placement::frag};
  if (const auto placement = value_named(word, kPlacements)) return *placement;
  throw error("placement '{}' is not known; give one of {}", word, names_of(kPlacements));
}

std::string_view name(Placement placement) {
  switch (placement) {
    case Placement::packed:
      return "packed";
    case Placement::spread:
      return "spread";
    case Placement::frag:
      return "frag";
  }
  return "";
}

void GpuPool::check_node(std::int64_t gpus) {
  if (gpus < 1 || gpus > kMostGpusInNode)
    throw error("nodes of {} GPUs are not usable; give nodes of 1 to {} GPUs", gpus, kMostGpusInNode);
}

GpuPool::GpuPool(std::int64_t nodes, std::int64_t gpus_per_node, bool flat, Placement placement)
    : gpus_per_node_(gpus_per_node), flat_(flat), placement_(placement) {
  check_node(gpus_per_node);
  if (nodes < 1) throw error("a cluster of {} nodes is not usable; give 1 or more", nodes);
  const std::uint64_t all = gpus_per_node == kMostGpusInNode ? ~0ULL : (1ULL << gpus_per_node) - 1;
  free_.assign(static_cast<std::size_t>(nodes), all);
  broken_of_.assign(free_.size(), 0);
  nodes_in_service_.assign(static_cast<std::size_t>(gpus_per_node) + 1, 0);
  nodes_in_service_.back() = nodes;
  place_.resize(free_.size());
  by_free_.resize(static_cast<std::size_t>(gpus_per_node) + 1);
  // The last of a list is taken first: node 0.
  for (std::int64_t node = nodes; node-- > 0;) {
    place_[static_cast<std::size_t>(node)] = static_cast<std::int32_t>(by_free_.back().size());
    by_free_.back().push_back(static_cast<std::int32_t>(node));
  }
  total_free_ = nodes * gpus_per_node;
}

std::int64_t GpuPool::free_count(std::int64_t node) const {
  return std::popcount(free_[static_cast<std::size_t>(node)]);
}

void GpuPool::change(std::int64_t node, std::uint64_t free) {
  auto& from = by_free_[static_cast<std::size_t>(free_count(node))];
  std::int32_t& place = place_[static_cast<std::size_t>(node)];
  from[static_cast<std::size_t>(place)] = from.back();
  place_[static_cast<std::size_t>(from.back())] = place;
  from.pop_back();
  total_free_ += std::popcount(free) - free_count(node);
  free_[static_cast<std::size_t>(node)] = free;
  auto& to = by_free_[static_cast<std::size_t>(std::popcount(free))];
  place = static_cast<std::int32_t>(to.size());
  to.push_back(static_cast<std::int32_t>(node));
}

std::int64_t GpuPool::room_for(std::int64_t gpus) const {
  if (gpus < 1 || gpus > size()) return 0;
  if (flat_) return size() / gpus;
  const std::int64_t whole = gpus / gpus_per_node_, rest = gpus % gpus_per_node_;
  const std::int64_t full = nodes_in_service_.back();
  if (rest == 0) return full / whole;
  // Rests of several gangs may share a node, and nodes with broken GPUs have room for rests alone.
  const std::int64_t rests = gpus_per_node_ / rest;
  std::int64_t in_parts = 0;
  for (std::int64_t in_service = rest; in_service < gpus_per_node_; ++in_service)
    in_parts += nodes_in_service_[static_cast<std::size_t>(in_service)] * (in_service / rest);
  if (whole == 0) return full * rests + in_parts;
  const auto fit = [&](std::int64_t gangs) {
    const std::int64_t others = std::max<std::int64_t>(0, gangs - in_parts);
    return gangs * whole + (others + rests - 1) / rests <= full;
  };
  std::int64_t most = 0, too_many = full / whole + 1;
  while (most + 1 < too_many) {
    const std::int64_t middle = (most + too_many) / 2;
    (fit(middle) ? most : too_many) = middle;
  }
  return most;
}

bool GpuPool::fits(std::int64_t gpus) const {
  if (gpus < 1 || gpus > total_free_) return false;
  if (flat_) return true;
  const std::int64_t whole = gpus / gpus_per_node_, rest = gpus % gpus_per_node_;
  const std::int64_t empty = nodes_with(gpus_per_node_);
  if (empty < whole) return false;
  if (rest == 0 || empty > whole) return true;
  for (std::int64_t free = rest; free < gpus_per_node_; ++free) {
    if (nodes_with(free) > 0) return true;
  }
  return false;
}

/// GPUs of a node with `free` free ones that the next job is expected to find too few.
double GpuPool::useless(std::int64_t free) const {
  double all = 0, larger = 0;
  for (const auto& [size, weight] : sizes_) {
    all += weight;
    const std::int64_t wanted = std::min<std::int64_t>(size, gpus_per_node_);
    if (wanted > free) larger += weight;
  }
  return all > 0 ? static_cast<double>(free) * larger / all : 0;
}

double GpuPool::fragmented() const {
  if (flat_) return 0;
  double gpus = 0;
  for (std::int64_t free = 1; free < gpus_per_node_; ++free) {
    if (nodes_with(free) > 0) gpus += static_cast<double>(nodes_with(free)) * useless(free);
  }
  return gpus;
}

std::int64_t GpuPool::choose_count(std::int64_t gpus) const {
  std::int64_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t free = gpus; free <= gpus_per_node_; ++free) {
    if (nodes_with(free) == 0) continue;
    double loss = 0;
    if (placement_ == Placement::packed) loss = static_cast<double>(free);
    if (placement_ == Placement::spread) loss = -static_cast<double>(free);
    if (placement_ == Placement::frag) loss = useless(free - gpus) - useless(free);
    if (loss < least) {
      least = loss;
      best = free;
    }
  }
  return best;
}

void GpuPool::take_from(std::int64_t node, std::int64_t gpus, GpuSet& taken) {
  const std::uint64_t free = free_[static_cast<std::size_t>(node)];
  const std::uint64_t chosen = lowest(free, gpus);
  taken.push_back({static_cast<std::int32_t>(node), chosen});
  change(node, free & ~chosen);
}

GpuSet GpuPool::take(std::int64_t gpus) {
  BRAID_CHECK(fits(gpus), "{} GPUs wanted of {} free", gpus, total_free_);
  GpuSet taken;
  const auto last_with = [&](std::int64_t free) { return by_free_[static_cast<std::size_t>(free)].back(); };
  while (gpus >= gpus_per_node_ && nodes_with(gpus_per_node_) > 0) {
    take_from(last_with(gpus_per_node_), gpus_per_node_, taken);
    gpus -= gpus_per_node_;
  }
  while (gpus > 0) {
    std::int64_t count = choose_count(std::min(gpus, gpus_per_node_));
    // In a flat pool what is left is gathered from the fullest nodes on.
    for (std::int64_t free = 1; count == 0; ++free) count = nodes_with(free) > 0 ? free : 0;
    const std::int64_t part = std::min(gpus, count);
    take_from(last_with(count), part, taken);
    gpus -= part;
  }
  return taken;
}

bool GpuPool::fits_in_place_of(const GpuSet& gpus, std::int64_t wanted) {
  give(gpus);
  const bool fits = this->fits(wanted);
  for (const NodeGpus& part : gpus) change(part.node, free_of(part.node) & ~part.gpus);
  return fits;
}

void GpuPool::give(const GpuSet& gpus) {
  for (const NodeGpus& part : gpus) {
    const std::uint64_t free = free_[static_cast<std::size_t>(part.node)];
    BRAID_CHECK((free & part.gpus) == 0, "GPUs {:x} of node {} are given back and free already", part.gpus, part.node);
    change(part.node, free | part.gpus);
  }
}

void GpuPool::set_broken(std::int64_t node, std::uint64_t broken) {
  std::uint64_t& known = broken_of_[static_cast<std::size_t>(node)];
  const auto in_service = [&] { return static_cast<std::size_t>(gpus_per_node_ - std::popcount(known)); };
  --nodes_in_service_[in_service()];
  broken_ += std::popcount(broken) - std::popcount(known);
  known = broken;
  ++nodes_in_service_[in_service()];
}

void GpuPool::break_down(const NodeGpus& gpus) {
  const auto node = static_cast<std::size_t>(gpus.node);
  BRAID_CHECK((free_[node] & gpus.gpus) == gpus.gpus, "GPUs {:x} of node {} break while in use", gpus.gpus, gpus.node);
  change(gpus.node, free_[node] & ~gpus.gpus);
  set_broken(gpus.node, broken_of_[node] | gpus.gpus);
}

void GpuPool::repair(const NodeGpus& gpus) {
  const std::uint64_t broken = broken_of_[static_cast<std::size_t>(gpus.node)];
  BRAID_CHECK((broken & gpus.gpus) == gpus.gpus, "GPUs {:x} of node {} are repaired and whole", gpus.gpus, gpus.node);
  give(GpuSet{gpus});
  set_broken(gpus.node, broken & ~gpus.gpus);
}

}  // namespace braid::sim
