#include "kernels/cuda/gpu_cudnn.h"
#include "kernels/cuda/gpu_state.h"
#include "kernels/cuda/library_attention.h"
#include "kernels/cuda/simt.h"

namespace braid::kernels::cuda {
namespace {

/// Of a thread's GPU, for as long as anything compiled with it lives.
using Handle = std::shared_ptr<cudnnContext>;

Handle make_handle() {
  cudnnHandle_t handle = nullptr;
  if (find_cudnn()->create(&handle) != CUDNN_STATUS_SUCCESS ||
      find_cudnn()->set_stream(handle, compute_stream()) != CUDNN_STATUS_SUCCESS)
    throw Failure("cuDNN does not begin on this GPU; profile with --kernels plain to compute without it");
  return {handle, [](cudnnHandle_t made) { find_cudnn()->destroy(made); }};
}

class CudnnGraph final : public CompiledGraph {
 public:
  CudnnGraph(Handle handle, CudnnKernels kernels, std::unique_ptr<CudnnPlan> plan)
      : handle_(std::move(handle)), kernels_(std::move(kernels)), plan_(std::move(plan)) {}
  /// Its code may be running, and CUDA graphs may hold it.
  ~CudnnGraph() override {
    gpu_state().subgraphs.forget();
    cudaStreamSynchronize(compute_stream());
  }
  void run(std::span<const GraphMemory> memory) const override {
    const Scratch workspace(plan_->workspace);
    run_plan(*plan_, handle_.get(), memory, workspace.memory());
    note_call(kLibraryGraphCall);
  }

 private:
  Handle handle_;
  CudnnKernels kernels_;
  std::unique_ptr<CudnnPlan> plan_;
};

class CudnnCompiler final : public GraphCompiler {
 public:
  std::unique_ptr<CompiledGraph> compile(const OperatorGraph& graph) override {
    gpu_state().subgraphs.interrupt();  // what is loaded now is no graph's
    std::unique_ptr<CudnnPlan> plan = compile_plan(graph, {handle_.get()}, kernels_);
    return plan ? std::make_unique<CudnnGraph>(handle_, kernels_, std::move(plan)) : nullptr;
  }

 private:
  Handle handle_ = make_handle();
  CudnnKernels kernels_;
};

}  // namespace

bool has_graph_library() {
  if (!find_cudnn()) return false;
  int device = 0, major = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  // Before that, rows that lie as packed sequences do are for sm_90 alone.
  constexpr std::size_t kPackedOnAll = 91801;
  return major >= 9 || find_cudnn()->get_version() >= kPackedOnAll;
}
std::string graph_library_version() {
  if (!find_cudnn()) return {};
  const std::size_t version = find_cudnn()->get_version();
  return fmt::format("cuDNN {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}
std::unique_ptr<GraphCompiler> make_graph_compiler() {
  return std::make_unique<CudnnCompiler>();
}

}  // namespace braid::kernels::cuda
