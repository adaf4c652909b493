#include <string>

#include "base/error.h"
#include "kernels/cuda/graph_library.h"

/// In place of gpu_graph.cu and gpu_cudnn.cu where there is no cudnn.h.
namespace braid::kernels::cuda {

bool has_graph_library() {
  return false;
}
std::string graph_library_version() {
  return {};
}
std::unique_ptr<GraphCompiler> make_graph_compiler() {
  throw InternalError("graphs without cuDNN");
}

}  // namespace braid::kernels::cuda
