#include "costmodel/links/link.h"

#include <algorithm>
#include <array>
#include <optional>

#include "costmodel/gpu/device.h"

namespace braid::costmodel {
namespace {

// Latencies are what NCCL's own tuning model gives one hop of its large-message protocol (nccl src/graph/tuning.cc,
// hwLat, Ring/Simple): NVLink 3.4, PCI 5.7, network 9.6 microseconds. Ethernet over TCP: 50, near the low end of the 40
// to 300 that Aspen Systems' comparison of interconnects gives for it.
constexpr double kNvlinkLatency = 3.4e-6;
constexpr double kPcieLatency = 5.7e-6;
constexpr double kNetworkLatency = 9.6e-6;
constexpr double kEthernetLatency = 50e-6;

// mLoRA's released transport copies a tensor from the GPU into pageable memory, writes it to a socket, reads it and
// copies it up again, one after another: two copies over PCI Express at the 6 GB/s that pageable memory allows and two
// through a local socket at about 6 GB/s each come to 1.5 GB/s. Its figure 10 implies 1.2 to 1.6; nothing is fitted.
constexpr double kStagedBandwidth = 1 / (2 / 6e9 + 2 / 6e9);
constexpr double kStagedLatency = 2 * 10e-6 + kEthernetLatency;

struct NamedLink {
  std::string_view name;
  LinkKind kind;
  bool inside_node;
  bool between_nodes;
  double bandwidth_bytes_per_second;
  double latency_seconds;
};

// One direction. PCI Express: 16 lanes of 8, 16 and 32 GT/s, of which 128 bits in 130 carry data (PCI-SIG). InfiniBand
// EDR, HDR and NDR and Ethernet: the data rate in the name. NVLink's rate is the GPU's.
constexpr std::array kLinks = {
    NamedLink{"nvlink", LinkKind::nvlink, true, false, 0, kNvlinkLatency},
    NamedLink{"nvswitch", LinkKind::nvlink, true, false, 0, kNvlinkLatency},
    NamedLink{"nvswitch-sharp", LinkKind::nvswitch_sharp, true, false, 0, kNvlinkLatency},
    NamedLink{"pcie3", LinkKind::pcie, true, false, 16 * 8e9 / 8 * 128 / 130, kPcieLatency},
    NamedLink{"pcie4", LinkKind::pcie, true, false, 16 * 16e9 / 8 * 128 / 130, kPcieLatency},
    NamedLink{"pcie5", LinkKind::pcie, true, false, 16 * 32e9 / 8 * 128 / 130, kPcieLatency},
    NamedLink{"cpu-staged", LinkKind::cpu_staged, true, true, kStagedBandwidth, kStagedLatency},
    NamedLink{"ib-100g", LinkKind::network, false, true, 100e9 / 8, kNetworkLatency},
    NamedLink{"ib-200g", LinkKind::network, false, true, 200e9 / 8, kNetworkLatency},
    NamedLink{"ib-400g", LinkKind::network, false, true, 400e9 / 8, kNetworkLatency},
    NamedLink{"eth-1g", LinkKind::ethernet, false, true, 1e9 / 8, kEthernetLatency},
    NamedLink{"eth-10g", LinkKind::ethernet, false, true, 10e9 / 8, kEthernetLatency},
    NamedLink{"eth-25g", LinkKind::ethernet, false, true, 25e9 / 8, kEthernetLatency},
};

/// Open MPI 4.1 over shared memory on a two-core Xeon: 1 MB one way in 100 microseconds, 4 KB in 2.5. A measured
/// profile of the machine takes the place of these.
constexpr NamedLink kMemory = {"memory", LinkKind::memory, true, false, 10.5e9, 2.5e-6};

const NamedLink* find_link(std::string_view name) {
  if (name == kMemory.name) return &kMemory;
  const auto found =
      std::find_if(kLinks.begin(), kLinks.end(), [&](const NamedLink& link) { return link.name == name; });
  return found == kLinks.end() ? nullptr : &*found;
}

std::string names_of(bool inside_node) {
  std::vector<std::string_view> names;
  for (const NamedLink& link : kLinks) {
    if (inside_node ? link.inside_node : link.between_nodes) names.push_back(link.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// What is wrong with that link between such GPUs and what would be right; empty when nothing is.
std::pair<std::string, std::string> fault_of(const NamedLink& named, const Device& device) {
  if (named.bandwidth_bytes_per_second > 0) return {};
  if (device.nvlink_bandwidth <= 0)
    return {fmt::format("the speed of {} on '{}' is not known", named.name, device.name),
            fmt::format("give {{bandwidth_gbs: , latency_us: }}, or pcie3, pcie4 or pcie5{}",
                        find_device(device.name)
                            ? ""
                            : fmt::format(", or one of the GPUs that are known: {}", fmt::join(device_names(), ", ")))};
  if (named.name != "nvlink" && !device.nvswitch)
    return {fmt::format("no NVSwitch joins GPUs of kind '{}'", device.name), "give nvlink (their bridge) or pcie4"};
  if (named.kind == LinkKind::nvswitch_sharp && device.generation != Generation::hopper)
    return {fmt::format("the NVSwitch of '{}' cannot add (SHARP)", device.name), "give nvswitch"};
  return {};
}

Link made(const NamedLink& named, const Device& device) {
  const double bandwidth =
      named.bandwidth_bytes_per_second > 0 ? named.bandwidth_bytes_per_second : device.nvlink_bandwidth;
  return {std::string(named.name), bandwidth, named.latency_seconds};
}

Link custom_link(const Node& node) {
  node.allow_only({"bandwidth_gbs", "latency_us"});
  const double bandwidth = node.number_at("bandwidth_gbs");
  if (bandwidth <= 0) {
    throw node.at("bandwidth_gbs").error(fmt::format("bandwidth_gbs {} is not usable", bandwidth), "give one above 0");
  }
  return {"custom", bandwidth * 1e9, node.number_at("latency_us", 0.0) * 1e-6};
}

}  // namespace

LinkKind Link::kind() const {
  if (name == "none") return LinkKind::none;
  const NamedLink* named = find_link(name);
  return named ? named->kind : LinkKind::custom;
}

Link memory_link() {
  return {std::string(kMemory.name), kMemory.bandwidth_bytes_per_second, kMemory.latency_seconds};
}

Link named_link(std::string_view name, const Device& device) {
  const NamedLink* named = find_link(name);
  if (!named) throw error("unknown link '{}'; known: {}, {}", name, names_of(true), names_of(false));
  const auto [wrong, right] = fault_of(*named, device);
  if (!wrong.empty()) throw error("{}; {}", wrong, right);
  return made(*named, device);
}

Link read_link(const Node& node, const std::string& gpu, bool inside_node) {
  if (node.is_map()) return custom_link(node);
  const std::string name = node.as_string(inside_node ? "intra_node" : "inter_node");
  if (inside_node && gpu == "cpu" && name == kMemory.name) return memory_link();
  const NamedLink* named = find_link(name);
  if (!named || named == &kMemory || !(inside_node ? named->inside_node : named->between_nodes)) {
    throw node.error(fmt::format("unknown link '{}'", name),
                     fmt::format("valid: {} or {{bandwidth_gbs: , latency_us: }}",
                                 inside_node && gpu == "cpu" ? std::string(kMemory.name) : names_of(inside_node)));
  }
  // Not every GPU is known by name: the cost model says so, unless the link's speed hangs on it.
  const Device unknown{.name = gpu};
  const Device* device = find_device(gpu);
  const auto [wrong, right] = fault_of(*named, device ? *device : unknown);
  if (!wrong.empty()) throw node.error(wrong, right);
  return made(*named, device ? *device : unknown);
}

}  // namespace braid::costmodel
