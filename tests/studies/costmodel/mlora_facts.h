#pragma once

#include <string>
#include <vector>

#include "costmodel/shapes/adapter.h"

namespace braid::costmodel::studies {

/// The backbones of mLoRA's single-GPU runs: int8 weights and recomputation on one A6000.
const std::vector<std::string>& mlora_backbones();

/// A step of `tasks` tasks of 8 sequences of 512 tokens each, kernel by kernel: forward, the layers again, backward.
struct LaunchFact {
  std::string backbone;
  std::string runs;  ///< "peft", "batched" or "batched, graph not pruned" (`kLaunchRuns`)
  std::int64_t tasks = 0;
  double adapter_launches = 0;  ///< β of mLoRA §3.3.2: what a second task adds to one in its batch
  double launches = 0;          ///< of all tasks
  double launch_seconds = 0;    ///< that the host takes for them
  double kernel_seconds = 0;    ///< that the GPU takes for them
  double step_seconds = 0;      ///< of the cost model: the host runs ahead of the GPU where it can

  /// Were the GPU to wait for every launch, as figure 14 adds them up.
  double launch_share() const { return launch_seconds / (launch_seconds + kernel_seconds); }
};

/// For 1, 2 and 4 tasks: one after another, as PEFT has them, and as one batch (BatchLoRA), its graph pruned or not.
std::vector<LaunchFact> launch_facts();

/// Figure 14's share of a step that starting kernels takes, of PEFT with one task.
double paper_launch_share(const std::string& backbone);

/// What a launch costs that the GPU waits for under an eager framework: the geometric mean over the backbones of what
/// gives figure 14's shares.
double exposed_launch_seconds();

/// What graph pruning spares of the peak of these tasks in one batch: 4 O h bytes of O tokens, by mLoRA §3.3.2.
double split_gradient_share(const std::string& backbone, std::int64_t tasks);

/// How well Eq. 5, learned from some points of a task's memory, foretells it for other batches and lengths (mLoRA
/// §3.4, figure 8(a)). The memory is that of this cost model, one GPU's at its peak.
struct MemoryFitFact {
  std::string backbone;
  std::size_t points = 0;
  std::int64_t least_tokens = 0;  ///< of the batches in question
  double mean_error = 0;   ///< over the points that were not learned from, and over kMemoryFitDraws draws of the points
  double worst_error = 0;  ///< of any
};

inline constexpr int kMemoryFitDraws = 100;

std::vector<MemoryFitFact> memory_fit_facts();

}  // namespace braid::costmodel::studies
