#pragma once

#include <span>
#include <vector>

#include "planner/latency/subgraph.h"

namespace braid::planner {

/// Fuses adapters across the hTasks of a bucket (MuxTune §3.4.3, case 2), which it does only where each hTask holds a
/// single task. Adapters of one hTask share a launch already (case 1: costmodel::AdapterKernels::side_by_side); across
/// buckets nothing is fused (case 3), which is why this takes one bucket.
///
/// `subgraphs` are the joined ones of `graphs`, of one and the same stage and pass; a graph's index is its hTask. The
/// isolated adapters of one frozen product of one layer become one subgraph, which waits for all that they wait for and
/// costs one launch: max {sum u t, max t} (Eq. 3). Which adapters are isolated decides what is fusible:
///   tp = 1: all, as there are no collectives.
///   tp > 1: forward those of qkv and gate_up; backward those of o and down, and the bottom layer's of qkv, whose input
///   needs no gradient. The others end in the sum that a collective waits for, and fusing them would make all
///   hTasks' collectives wait for the last hTask.
/// The result is in order of depth. Cost: O(n log n + edges).
std::vector<Subgraph> fuse_adapters(std::span<const Subgraph> subgraphs, std::span<const OperatorGraph* const> graphs,
                                    std::span<const costmodel::MicrobatchLoad> htasks, const LaunchPricing& pricing);

/// Whether each holds one task.
bool single_tasks(std::span<const costmodel::MicrobatchLoad> htasks);

}  // namespace braid::planner
