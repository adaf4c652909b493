#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <cudnn.h>

#include "kernels/cuda/graph_library.h"

/// cuDNN's graphs by its backend's own interface, which needs no more than its library where braid runs.
namespace braid::kernels::cuda {

/// What is called of cuDNN.
struct Cudnn {
  decltype(cudnnGetVersion)* get_version;
  decltype(cudnnGetErrorString)* error_string;
  decltype(cudnnGetLastErrorString)* last_error;
  decltype(cudnnCreate)* create;
  decltype(cudnnDestroy)* destroy;
  decltype(cudnnSetStream)* set_stream;
  decltype(cudnnBackendCreateDescriptor)* create_descriptor;
  decltype(cudnnBackendDestroyDescriptor)* destroy_descriptor;
  decltype(cudnnBackendSetAttribute)* set_attribute;
  decltype(cudnnBackendGetAttribute)* get_attribute;
  decltype(cudnnBackendFinalize)* finalize;
  decltype(cudnnBackendExecute)* execute;
};

/// Null where libcudnn.so.9 is not found, or is older than 9.10.2.
const Cudnn* find_cudnn();

/// One of cuDNN's descriptors. Every function throws Failure with what cuDNN says.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);
  cudnnBackendDescriptor_t get() const { return descriptor_.get(); }

  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                       const void* values);
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values);
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, bool value);
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnDataType_t value);
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, std::span<const cudnnBackendDescriptor_t> values);
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
    const cudnnBackendDescriptor_t one = value.get();
    return set(name, std::span(&one, 1));
  }
  void finish();

 private:
  std::shared_ptr<void> descriptor_;
};

/// What plans are compiled for: a handle's GPU, or one that is described.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  const CudnnDescriptor* device = nullptr;  ///< where there is no handle
};

/// The GPU that such a text describes, as CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION has it.
CudnnDescriptor described_gpu(const std::string& json);

/// Compiled kernels of graphs that differ in sizes alone.
using CudnnKernels = std::shared_ptr<CudnnDescriptor>;

/// A graph as one kernel; its tensors' numbers are their identifiers + 1.
struct CudnnPlan {
  CudnnDescriptor plan;
  std::int64_t workspace = 0;  ///< bytes
  std::int64_t engine = 0;     ///< cuDNN's number of it
  std::vector<CudnnDescriptor> made_of;
};

/// The plan that cuDNN's heuristics put first of those that it can compile; null where there is none. `kernels` is made
/// by the first graph.
std::unique_ptr<CudnnPlan> compile_plan(const OperatorGraph& graph, const CudnnTarget& target, CudnnKernels& kernels);

/// Puts it into the handle's stream.
void run_plan(const CudnnPlan& plan, cudnnHandle_t handle, std::span<const GraphMemory> memory, void* workspace);

}  // namespace braid::kernels::cuda
