#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/node.h"
#include "costmodel/gpu/device.h"
#include "costmodel/gpu/gemm_model.h"
#include "costmodel/gpu/stream_model.h"
#include "costmodel/links/link.h"
#include "costmodel/profile/kernel_choice.h"
#include "costmodel/shapes/data_type.h"
#include "costmodel/work/memory.h"
#include "costmodel/work/operators.h"

namespace braid::costmodel {

/// GPUs clock no lower while they work: nvidia-smi offers from about an eighth of the full frequency.
inline constexpr double kLeastClock = 0.1;
/// More of a GPU than this no collective takes.
inline constexpr double kMostSlowdown = 100;

/// What the source of an entry begins with that was not measured.
inline constexpr std::string_view kDerived = "derived";

/// One measured or derived point: `seconds` is the median of `count` runs, `spread` their interquartile range over it.
struct ProfileEntry {
  Operator op = Operator::linear;
  Pass pass = Pass::forward;
  std::string dtype = "f32";
  std::int64_t tp = 1;
  OperatorShape shape{};
  std::int64_t tokens = 0;
  std::int64_t context = 0;  ///< attention: of each sequence's last token
  std::int64_t prefix = 0;   ///< attention: of the context, what earlier chunks of the sequences hold
  double seconds = 0;
  double spread = 0;
  std::int64_t count = 0;
  std::string source;  ///< "measured", or what it was derived from

  /// Attention: tokens of each sequence that are computed; `tokens` are whole sequences of these.
  std::int64_t chunk() const { return context - prefix; }
};

/// Of a machine's memory, what is left to others. What was measured on CPUs has it taken off.
inline constexpr double kFreeMemoryShare = 0.1;

/// What a kind of machine was found to do. `threads` each, with `corunning_ranks` ranks at work at once.
struct Profile {
  std::string machine;
  std::vector<std::string> versions;
  int threads = 1;
  int corunning_ranks = 1;
  int cores = 0;           ///< of the machine; 0: not told
  double peak_flops = 0;   ///< of one rank: the best rate of a large f32 matrix product
  Bytes memory_bytes = 0;  ///< that one rank may use
  /// What a rank was found to hold once all was measured and freed: compiled products, scratch, code, messages'
  /// buffers. No item of the memory model says it.
  Bytes runtime_bytes = 0;
  /// What the rank with the head holds beside that: the head's compiled products.
  Bytes head_runtime_bytes = 0;
  /// What passes were found to take over the sum of their operators' medians, which leave out what holds each up now
  /// and then. A pass of measured operators is this much longer.
  double pass_skew = 1;
  /// Of a pass of one piece of work between those measured (exec::ReferencePass): run again, it tells how far the
  /// machine has changed its pace since. 0: not measured.
  double reference_pass_seconds = 0;
  std::vector<ProfileEntry> entries;
  /// A GPU whose datasheet stands in for whatever has no entry; empty: only what was measured is known.
  std::string device;
  DataType dtype = DataType::f32;  ///< of weights and activations
  /// What of braid's own computed when it was measured: "cpu", "reference", "cuda", "cuda-f32" or "cuda-tf32".
  std::string backend = "cpu";
  /// What a GPU's second kernels computed when it was measured, and compute in runs of its plans.
  std::vector<KernelChoice> kernels;
  /// Whether activations were bf16.
  bool computes_in_bf16() const { return backend == "cuda"; }
  /// Of GPUs, measured or by a datasheet.
  bool on_gpus() const { return !device.empty() || backend.starts_with("cuda"); }
  /// What starting a kernel costs the host of a GPU; the middle of the 4 to 6 microseconds that are measured for CUDA.
  double launch_seconds = 5e-6;
  /// What the GPU waits for each kernel beside that, in a framework whose host does not run ahead of it; the 0 of one
  /// that does hides launches behind kernels that outlast them.
  double exposed_launch_seconds = 0;
  /// How many times as long compute takes beside a collective; 0: as overlap_slowdown (collective_model.h) has it.
  double overlap_slowdown = 0;
  /// At which share of its full frequency the GPU computes; memory and links keep theirs.
  double clock = 1;
  AttentionKind attention = AttentionKind::flash;  ///< of the GPU's framework
  /// Plans for the GPU recompute every layer where their policy is free to choose: of profiles of older builds.
  bool recomputes = false;
  /// How the GPU departs from its datasheet, by its own measured products and copies (profile_fit.h); else as its
  /// generation does.
  std::optional<GemmCoefficients> products;
  std::optional<StreamCoefficients> copies;
  bool loss_in_place = false;  ///< likewise of the logits (Storage::loss_in_place)
  Interconnect interconnect;   ///< between ranks, where messages have no entries
  Storage storage() const;

  std::string measured_at;  ///< date and time; under `meta` in the file
  /// What measuring was directed by: hashes of workloads, policies and budgets; under `meta` in the file.
  std::vector<std::string> measured_for;
};

/// Its machine, and what plans for it do that they do not of themselves, such as "a40, by its datasheet, at 0.8 of its
/// clock, layers recomputed".
std::string describe(const Profile& profile);

/// The profile of a GPU nobody holds: its datasheet's figures, no entries. Throws Error that lists the known GPUs.
Profile analytic_profile(const std::string& gpu, DataType dtype);

/// Throws Error for a file that is not a profile.
Profile read_profile(const std::filesystem::path& path);
Profile profile_from(const Node& node);
/// One entry a line, so that two profiles can be compared line by line.
std::string to_json(const Profile& profile);

}  // namespace braid::costmodel
