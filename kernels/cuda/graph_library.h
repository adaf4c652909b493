#pragma once

#include <memory>
#include <span>
#include <string>

#include "kernels/cuda/operator_graph.h"

/// The library that compiles graphs of operators for this thread's device: cuDNN where there is a GPU, an interpreter
/// of the tests where it is the processor.
namespace braid::kernels::cuda {

/// Where a tensor of a graph is: of the device's memory, or the host's where it is one number.
struct GraphMemory {
  int tensor = -1;
  void* memory = nullptr;
};

class CompiledGraph {
 public:
  virtual ~CompiledGraph() = default;
  /// In the order of the compute stream; every tensor but those that pass must be given.
  virtual void run(std::span<const GraphMemory> memory) const = 0;
};

/// Compiles graphs that differ in their tensors' sizes alone: the first takes seconds, others milliseconds.
class GraphCompiler {
 public:
  virtual ~GraphCompiler() = default;
  /// Null where the library has no kernel for it.
  virtual std::unique_ptr<CompiledGraph> compile(const OperatorGraph& graph) = 0;
};

bool has_graph_library();
/// Its name and version; empty where there is none.
std::string graph_library_version();
/// There must be one.
std::unique_ptr<GraphCompiler> make_graph_compiler();

}  // namespace braid::kernels::cuda
