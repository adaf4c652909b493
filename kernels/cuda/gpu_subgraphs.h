#pragma once

#include <set>
#include <vector>

#include <cuda_runtime.h>

#include "base/mixed_hash.h"
#include "kernels/cuda/recent.h"
#include "kernels/device.h"

namespace braid::kernels::cuda {

struct GpuState;

/// Subgraphs that go to the GPU as CUDA graphs. What is called is captured. At the end the executable graph that calls
/// of the same kernels in the same order made before, whatever their sizes and addresses were, is updated with it and
/// launched; where there is none, or the driver takes no such update, one is made. The small tables that go along with
/// calls are brought by one copy before.
///
/// A kind of subgraph goes call by call the first time, so that what is loaded and compiled then is no graph's.
class Subgraphs {
 public:
  explicit Subgraphs(GpuState& gpu) : gpu_(gpu) {}
  Subgraphs(const Subgraphs&) = delete;
  Subgraphs& operator=(const Subgraphs&) = delete;
  ~Subgraphs();

  /// Takes what subgraphs need of the GPU's memory, before any is begun.
  void prepare();
  void begin(const SubgraphCall& call);
  void end();
  /// What was captured never runs.
  void drop();
  /// Before the host waits, or others wait for the stream: what was captured runs, and what follows until the end of
  /// the subgraph is launched call by call.
  void interrupt() { end(); }
  bool captures() const { return captures_; }

  /// Something has been called that a graph is to be known by.
  void note(std::uint64_t what) {
    if (captures_) calls_.add(static_cast<std::int64_t>(what));
  }
  /// Where a copy of a small table will be when the subgraph runs; null where nothing is captured, or no room is left.
  void* table(const void* host, std::int64_t bytes);

  /// The number of the subgraph that is captured; 0: none is.
  std::int64_t captured() const { return captures_ ? begun_ : 0; }
  /// Whether that subgraph has been launched, or dropped.
  bool has_been_launched(std::int64_t number) const { return number < begun_ || !captures_; }
  /// Graphs that were made before, whose code goes away.
  void forget();

 private:
  struct Destroy {
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  };
  using Executable = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy>;
  static constexpr std::size_t kMostGraphs = 64;
  static constexpr std::int64_t kTables = std::int64_t{1} << 20;

  void launch(cudaGraph_t graph);

  GpuState& gpu_;
  bool captures_ = false;
  std::int64_t begun_ = 0;
  MixedHash calls_;
  std::set<std::size_t> known_kinds_;
  Recent<std::size_t, Executable> graphs_{kMostGraphs};
  void* tables_ = nullptr;         // of the device
  std::vector<std::byte> staged_;  // what is to be there
};

}  // namespace braid::kernels::cuda
