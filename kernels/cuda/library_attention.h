#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "kernels/cuda/attention_graph.h"
#include "kernels/cuda/graph_library.h"
#include "kernels/cuda/recent.h"

namespace braid::kernels::cuda {

/// Attention's forward pass by the library of graphs, with what it has compiled for this device.
class LibraryAttention {
 public:
  /// Whether the library compiles attention here: its parts may be missing. Takes about a second, once.
  bool works();
  /// Whether the library makes it: heads of a multiple of 8 numbers, of 128 at most, activations in bf16 on 16 bytes,
  /// and no keys of earlier microbatches. Where it does not nothing is done. Throws Failure where it should and has no
  /// kernel.
  bool forward(const AttentionShape& shape, std::span<const SequenceRows> sequences, ConstMatrix q, ConstMatrix k,
               ConstMatrix v, Matrix out, Matrix log_sum);

 private:
  struct Compiled {
    AttentionGraph graph;
    std::unique_ptr<CompiledGraph> kernel;
  };
  /// Graphs of a family that are kept, each with code on the device. Another takes the host two milliseconds.
  static constexpr std::size_t kMostGraphs = 128;
  struct Family {
    std::unique_ptr<GraphCompiler> compiler;
    Recent<std::pair<std::int64_t, std::int64_t>, Compiled> graphs{kMostGraphs};  // by sequences and longest
  };
  const Compiled& compiled(const AttentionLayout& layout, std::int64_t sequences, std::int64_t longest);

  std::map<AttentionLayout, Family> families_;
  std::optional<bool> works_;
};

/// This thread's device's.
LibraryAttention& library_attention();

}  // namespace braid::kernels::cuda
