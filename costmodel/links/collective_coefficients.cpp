#include "costmodel/links/collective_model.h"

namespace braid::costmodel {
namespace {

/// A ring and a message between two ranks.
struct LinkCoefficients {
  CollectiveCoefficients ring;
  CollectiveCoefficients message;
};

// What `costmodel_study crossvalidate` printed for Vidur's collectives (results/costmodel/collectives.txt): the DGX
// hosts' NVLink, and PCIe where four GPUs of pairwise hosts meet. Those have no messages without NVLink: a message
// there starts like one over NVLink and saturates like a ring.
constexpr LinkCoefficients kAmpereNvlink = {{1.19e-5, 1.47e-6, 5.90, 1.73}, {1.39e-5, 0, 1, 1}};
constexpr LinkCoefficients kHopperNvlink = {{7.78e-6, 1.55e-6, 3.13, 1.25}, {7.46e-6, 0, 1.21, 1.25}};
constexpr LinkCoefficients kPcie4 = {{5.68e-5, 0, 1.36, 1.33}, {1.39e-5, 0, 1.36, 1.33}};
constexpr LinkCoefficients kPcie5 = {{2.51e-5, 0, 2.07, 1.26}, {7.46e-6, 0, 2.07, 1.26}};

// Messages between DGX H100 nodes. Their rings are not in the table: each hop costs what NCCL's tuning model gives.
constexpr CollectiveCoefficients kNetworkMessage = {1.75e-5, 0, 1.75, 1.35};

/// The wire's own figures.
LinkCoefficients bare(const Link& link, double frame = 1) {
  const CollectiveCoefficients both{0, link.latency_seconds, frame, frame};
  return {both, both};
}

LinkCoefficients of_link(Generation generation, const Link& link) {
  switch (link.kind()) {
    case LinkKind::nvlink:
    case LinkKind::nvswitch_sharp:
      return generation == Generation::hopper ? kHopperNvlink : kAmpereNvlink;
    case LinkKind::pcie:
      return link.name == "pcie5" ? kPcie5 : kPcie4;
    case LinkKind::network:
      return {{kNetworkMessage.launch_seconds, link.latency_seconds, kNetworkMessage.before_saturation,
               kNetworkMessage.saturated},
              kNetworkMessage};
    case LinkKind::ethernet:
      // 1,448 of the 1,538 bytes that a full frame takes on the wire are the message's.
      return bare(link, 1538.0 / 1448);
    case LinkKind::none:
    case LinkKind::memory:
    case LinkKind::cpu_staged:
    case LinkKind::custom:
      break;
  }
  return bare(link);
}

}  // namespace

CollectiveCoefficients collective_coefficients(Generation generation, const Link& link, Operator op) {
  const LinkCoefficients both = of_link(generation, link);
  return op == Operator::send_recv ? both.message : both.ring;
}

}  // namespace braid::costmodel
