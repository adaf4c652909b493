#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "costmodel/profile/cost_model.h"
#include "costmodel/work/memory.h"
#include "costmodel/work/operators.h"

namespace braid::costmodel::studies {

/// A Llama-2-7B layer with LoRA, forward and backward, on A100-40 GPUs (LobRA's profile).
struct ReferenceLayer {
  std::int64_t tp = 1;
  std::int64_t sequences = 1;
  std::int64_t length = 0;
  double seconds = 0;

  std::int64_t tokens() const { return sequences * length; }
};
inline constexpr std::string_view kReferenceLayerColumns = "tp,seq_len,mbs,time";
/// Reads a table with those columns, times in milliseconds. Throws Error "FILE:LINE: ...".
std::vector<ReferenceLayer> read_reference_layers(const std::filesystem::path& csv);

/// The largest power of two of tokens a microbatch for which training fitted, on the same GPUs.
struct ReferenceCapacity {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t most_tokens = 0;
};
inline constexpr std::string_view kReferenceCapacityColumns = "tp,pp,sp,max_tokens";
std::vector<ReferenceCapacity> read_reference_capacities(const std::filesystem::path& csv);

/// What LobRA trains: an adapter of rank 8 on every linear layer, no dropout; Megatron's tensor and sequence
/// parallelism.
AdapterShape lobra_adapter();
/// One layer of a replica of that degree.
StageShape lobra_layer(std::int64_t tp);
/// `sequences` sequences of one task.
MicrobatchLoad lobra_load(std::int64_t sequences, std::int64_t length);

/// The GPUs they ran on, joined by NVLink, under a framework whose launches the GPU waits for that long.
Profile lobra_profile(double exposed_launch_seconds);
/// Forward and backward of such a layer, its collectives among them.
double lobra_layer_seconds(const CostModel& cost, const ReferenceLayer& layer);

/// What a launch costs the GPU that makes the sum of the rows' relative errors least: that of one of the rows' own
/// differences.
double fitted_launch_seconds(std::span<const ReferenceLayer> layers);
/// The same of the rows of eight shards, where most kernels are short: what an eager framework's GPU waits for.
inline constexpr double kEagerLaunchSeconds = 20.8e-6;

/// Bytes on the fullest rank of a replica ⟨tp, pp⟩ that keeps 2 · pp microbatches of `tokens` tokens alive (GPipe).
Bytes lobra_peak_bytes(std::int64_t tp, std::int64_t pp, std::int64_t tokens);
/// The largest power of two of tokens whose peak is within `memory`; 0 when none is.
std::int64_t lobra_most_tokens(std::int64_t tp, std::int64_t pp, Bytes memory);

}  // namespace braid::costmodel::studies
