#include "workload/link.h"

#include <algorithm>
#include <array>

namespace braid::workload {
namespace {

// Latencies are what NCCL's own tuning model gives one hop of its large-message protocol (nccl src/graph/tuning.cc,
// hwLat, Ring/Simple): NVLink 3.4, PCI 5.7, network 9.6 microseconds. Ethernet over TCP: 50, near the low end of the 40
// to 300 that Aspen Systems' comparison of interconnects gives for it.
constexpr double kNvlinkLatency = 3.4e-6;
constexpr double kPcieLatency = 5.7e-6;
constexpr double kNetworkLatency = 9.6e-6;
constexpr double kEthernetLatency = 50e-6;

struct NamedLink {
  std::string_view name;
  bool inside_node;
  double bandwidth_bytes_per_second;
  double latency_seconds;
};

// One direction. PCI Express: 16 lanes of 8, 16 and 32 GT/s, of which 128 bits in 130 carry data (PCI-SIG). InfiniBand
// EDR and HDR and Ethernet: the data rate in the name.
constexpr std::array kLinks = {
    NamedLink{"pcie3", true, 16 * 8e9 / 8 * 128 / 130, kPcieLatency},
    NamedLink{"pcie4", true, 16 * 16e9 / 8 * 128 / 130, kPcieLatency},
    NamedLink{"pcie5", true, 16 * 32e9 / 8 * 128 / 130, kPcieLatency},
    NamedLink{"ib-100g", false, 100e9 / 8, kNetworkLatency},
    NamedLink{"ib-200g", false, 200e9 / 8, kNetworkLatency},
    NamedLink{"eth-1g", false, 1e9 / 8, kEthernetLatency},
    NamedLink{"eth-10g", false, 10e9 / 8, kEthernetLatency},
};

struct GpuNvlink {
  std::string_view gpu;  ///< what the GPU's name begins with
  double bandwidth_bytes_per_second;
  bool has_switch;
};

// NVIDIA's datasheets give the sum of both directions: 300 GB/s (V100), 112.5 (bridge of A40, RTX A6000, RTX 3090), 600
// (A100), 400 (A800), 900 (H100 SXM, H200).
constexpr std::array kNvlinks = {
    GpuNvlink{"v100", 150e9, true},        GpuNvlink{"a40", 56.25e9, false},     GpuNvlink{"a6000", 56.25e9, false},
    GpuNvlink{"rtxa6000", 56.25e9, false}, GpuNvlink{"rtx3090", 56.25e9, false}, GpuNvlink{"a100", 300e9, true},
    GpuNvlink{"a800", 200e9, true},        GpuNvlink{"h100", 450e9, true},       GpuNvlink{"h200", 450e9, true},
};

Link nvlink(const Node& node, const std::string& name, const std::string& gpu) {
  for (const GpuNvlink& entry : kNvlinks) {
    if (!gpu.starts_with(entry.gpu)) continue;
    if (name == "nvswitch" && !entry.has_switch) {
      throw node.error(fmt::format("no NVSwitch joins GPUs of kind '{}'", gpu), "give nvlink (their bridge) or pcie4");
    }
    return {name, entry.bandwidth_bytes_per_second, kNvlinkLatency};
  }
  throw node.error(fmt::format("the speed of {} on '{}' is not known", name, gpu),
                   "give {bandwidth_gbs: , latency_us: }, or pcie3, pcie4 or pcie5");
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

Link memory_link() {
  // Open MPI 4.1 over shared memory on a two-core Xeon: 1 MB one way in 100 microseconds, 4 KB in 2.5. A measured
  // profile of the machine takes the place of these.
  return {"memory", 10.5e9, 2.5e-6};
}

Link read_link(const Node& node, const std::string& gpu, bool inside_node) {
  if (node.is_map()) return custom_link(node);
  const std::string name = node.as_string(inside_node ? "intra_node" : "inter_node");
  if (inside_node && gpu == "cpu" && name == "memory") return memory_link();
  if (inside_node && (name == "nvlink" || name == "nvswitch")) return nvlink(node, name, gpu);
  const auto found = std::find_if(kLinks.begin(), kLinks.end(), [&](const NamedLink& link) {
    return link.name == name && link.inside_node == inside_node;
  });
  if (found != kLinks.end()) return {name, found->bandwidth_bytes_per_second, found->latency_seconds};
  const char* valid = !inside_node   ? "ib-100g, ib-200g, eth-1g, eth-10g"
                      : gpu == "cpu" ? "memory"
                                     : "nvlink, nvswitch, pcie3, pcie4, pcie5";
  throw node.error(fmt::format("unknown link '{}'", name),
                   fmt::format("valid: {} or {{bandwidth_gbs: , latency_us: }}", valid));
}

}  // namespace braid::workload
