#pragma once

#include <span>

#include "costmodel/gpu/device.h"
#include "costmodel/links/link.h"
#include "costmodel/work/operators.h"

namespace braid::costmodel {

/// How NCCL departs from the wire: what starting costs, what each hop of the ring costs, and how much longer than on
/// the bare wire the first `kSaturatingBytes` of a message and the rest take.
struct CollectiveCoefficients {
  double launch_seconds = 0;
  double hop_seconds = 0;
  double before_saturation = 1;
  double saturated = 1;
};
inline constexpr double kSaturatingBytes = 2e6;

/// Of a ring, or of a message (send_recv), over a link between GPUs of this generation. Fitted on Vidur's table of
/// collectives where it has the link (NVLink of A100 and H100, PCIe 4 and 5; `costmodel_study crossvalidate` prints the
/// fit); the others are sourced in collective_coefficients.cpp.
CollectiveCoefficients collective_coefficients(Generation generation, const Link& link, Operator op);

/// Time of one `op` over `ranks` ranks joined by one kind of link. `bytes` is what each rank holds before a send,
/// all-reduce or reduce-scatter and after an all-gather. Rings: an all-reduce passes each byte over a rank's link
/// 2 (n - 1) / n times, the two halves of it once each; with SHARP the switch adds, and a byte passes 1 + 1 / n times.
/// Never falls with more bytes, never lies below latency + wire bytes / bandwidth.
double collective_seconds(const CollectiveCoefficients& coefficients, const Link& link, Operator op, double bytes,
                          std::int64_t ranks);

/// The same where the ranks fill `nodes` nodes: the faster of one ring over everything, bound by the link between
/// nodes, and of a reduce-scatter inside each node, rings of those that hold the same share across nodes (one after
/// another over the node's one link), and an all-gather inside.
double collective_seconds(Generation generation, const Interconnect& interconnect, Operator op, double bytes,
                          std::int64_t ranks, std::int64_t nodes);

/// A measured collective within a node, or a send and its receive.
struct CollectivePoint {
  Operator op = Operator::all_reduce;
  double bytes = 0;
  std::int64_t ranks = 2;
  double seconds = 0;
};

/// The coefficients under which the sum of collective_seconds' relative errors is least, so that the erratic times of
/// small messages do not draw it; none is negative.
CollectiveCoefficients fit_collectives(std::span<const CollectivePoint> points, const Link& link);

/// MuxTune §4 lets NCCL have 8 thread blocks while other work runs, each of which holds a multiprocessor: compute
/// beside a collective takes longer by the share of multiprocessors left.
inline constexpr std::int64_t kCollectiveBlocks = 8;
double overlap_slowdown(const Device& device, std::int64_t blocks = kCollectiveBlocks);

}  // namespace braid::costmodel
