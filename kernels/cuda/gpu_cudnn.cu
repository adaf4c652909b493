#include <algorithm>
#include <optional>

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/error.h"
#include "kernels/cuda/gpu_cudnn.h"

namespace braid::kernels::cuda {
namespace {

/// Attention of activations in bf16 is wrong in those before.
constexpr std::size_t kOldestVersion = 91002;
/// What a plan may need beside its tensors: nothing plans for it.
constexpr std::int64_t kMostWorkspace = 16 << 20;

std::optional<Cudnn> load() {
  // What cuDNN is called through ends the program where the part that it hands graphs to is missing.
  if (!::dlopen("libcudnn_graph.so.9", RTLD_NOW | RTLD_LOCAL)) return std::nullopt;
  void* library = ::dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  if (!library) return std::nullopt;
  Cudnn cudnn{};
  bool complete = true;
  const auto find = [&]<typename Function>(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(library, name));
    complete = complete && function;
  };
  find(cudnn.get_version, "cudnnGetVersion");
  find(cudnn.error_string, "cudnnGetErrorString");
  find(cudnn.last_error, "cudnnGetLastErrorString");
  find(cudnn.create, "cudnnCreate");
  find(cudnn.destroy, "cudnnDestroy");
  find(cudnn.set_stream, "cudnnSetStream");
  find(cudnn.create_descriptor, "cudnnBackendCreateDescriptor");
  find(cudnn.destroy_descriptor, "cudnnBackendDestroyDescriptor");
  find(cudnn.set_attribute, "cudnnBackendSetAttribute");
  find(cudnn.get_attribute, "cudnnBackendGetAttribute");
  find(cudnn.finalize, "cudnnBackendFinalize");
  find(cudnn.execute, "cudnnBackendExecute");
  if (!complete || cudnn.get_version() < kOldestVersion) return std::nullopt;
  return cudnn;
}

const Cudnn& cudnn() {
  const Cudnn* found = find_cudnn();
  BRAID_CHECK(found, "cuDNN is called and not there");
  return *found;
}

void check(cudnnStatus_t status, const char* doing) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char said[1024] = "";
  cudnn().last_error(said, sizeof said);
  throw Failure(fmt::format("cuDNN failed to {}: {} ({}); profile with --kernels plain to compute without it", doing,
                            cudnn().error_string(status), said));
}

/// Of one value, whatever type cuDNN has for it.
template <typename Value>
void set_one(CudnnDescriptor& descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
             Value value) {
  descriptor.set(name, type, 1, &value);
}

cudnnDataType_t type_of(GraphType type) {
  switch (type) {
    case GraphType::bf16:
      return CUDNN_DATA_BFLOAT16;
    case GraphType::f32:
      return CUDNN_DATA_FLOAT;
    case GraphType::int32:
      return CUDNN_DATA_INT32;
    case GraphType::int64:
      return CUDNN_DATA_INT64;
    case GraphType::boolean:
      return CUDNN_DATA_BOOLEAN;
  }
  throw InternalError("a type that cuDNN has no name for");
}

/// A graph's tensors and operators as descriptors.
class Described {
 public:
  explicit Described(const OperatorGraph& graph) : graph_(graph), tensors_(graph.tensors.size()) {
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) describe_tensor(static_cast<int>(i));
    for (const GraphOp& op : graph.ops) {
      ops_.push_back(op.work == GraphWork::matmul                                  ? matmul(op)
                     : op.work == GraphWork::greatest || op.work == GraphWork::sum ? reduction(op)
                                                                                   : pointwise(op));
      ops_.back().finish();
    }
  }

  CudnnDescriptor graph(const CudnnTarget& target) const {
    CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    std::vector<cudnnBackendDescriptor_t> ops;
    for (const CudnnDescriptor& op : ops_) ops.push_back(op.get());
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, ops);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED, true);
    if (target.handle) set_one(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
    graph.finish();
    return graph;
  }
  std::vector<CudnnDescriptor> all() const {
    std::vector<CudnnDescriptor> all = ops_;
    for (const std::optional<CudnnDescriptor>& tensor : tensors_) all.push_back(*tensor);
    return all;
  }

 private:
  void describe_tensor(int number) {
    std::optional<CudnnDescriptor>& made = tensors_[static_cast<std::size_t>(number)];
    if (made) return;
    const GraphTensor& tensor = graph_.tensors[static_cast<std::size_t>(number)];
    if (tensor.offsets >= 0) describe_tensor(tensor.offsets);
    CudnnDescriptor& descriptor = made.emplace(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    const std::int64_t identifier = number + 1, alignment = 16;
    descriptor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type_of(tensor.type))
        .set(CUDNN_ATTR_TENSOR_DIMENSIONS, tensor.sizes)
        .set(CUDNN_ATTR_TENSOR_STRIDES, tensor.strides)
        .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, std::span(&identifier, 1))
        .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::span(&alignment, 1))
        .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, tensor.kind == GraphTensor::Kind::passing)
        .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, tensor.kind == GraphTensor::Kind::number);
    if (tensor.offsets >= 0) descriptor.set(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, of(tensor.offsets));
    descriptor.finish();
  }
  const CudnnDescriptor& of(int tensor) const { return *tensors_[static_cast<std::size_t>(tensor)]; }

  CudnnDescriptor matmul(const GraphOp& op) const {
    CudnnDescriptor kind(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    kind.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finish();
    CudnnDescriptor made(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    made.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, kind)
        .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, of(op.a))
        .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, of(op.b))
        .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, of(op.to));
    if (op.rows >= 0) made.set(CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, of(op.rows));
    if (op.columns >= 0) made.set(CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, of(op.columns));
    if (op.depth >= 0) made.set(CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, of(op.depth));
    return made;
  }

  CudnnDescriptor reduction(const GraphOp& op) const {
    CudnnDescriptor kind(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    kind.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    set_one(kind, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
            op.work == GraphWork::greatest ? CUDNN_REDUCE_TENSOR_MAX : CUDNN_REDUCE_TENSOR_ADD);
    kind.finish();
    CudnnDescriptor made(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    made.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, kind)
        .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, of(op.a))
        .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, of(op.to));
    return made;
  }

  struct Pointwise {
    cudnnPointwiseMode_t mode;
    cudnnDataType_t computes = CUDNN_DATA_FLOAT;
    std::int64_t axis = -1;
  };
  static Pointwise pointwise_of(GraphWork work) {
    constexpr std::int64_t kRows = 2, kColumns = 3;
    switch (work) {
      case GraphWork::multiply:
        return {CUDNN_POINTWISE_MUL};
      case GraphWork::add:
        return {CUDNN_POINTWISE_ADD};
      case GraphWork::subtract:
        return {CUDNN_POINTWISE_SUB};
      case GraphWork::divide:
        return {CUDNN_POINTWISE_DIV};
      case GraphWork::exp:
        return {CUDNN_POINTWISE_EXP};
      case GraphWork::log:
        return {CUDNN_POINTWISE_LOG};
      case GraphWork::row_index:
        return {CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, kRows};
      case GraphWork::column_index:
        return {CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, kColumns};
      case GraphWork::less:
        return {CUDNN_POINTWISE_CMP_LT, CUDNN_DATA_BOOLEAN};
      case GraphWork::at_least:
        return {CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN};
      case GraphWork::both:
        return {CUDNN_POINTWISE_LOGICAL_AND, CUDNN_DATA_BOOLEAN};
      case GraphWork::select:
        return {CUDNN_POINTWISE_BINARY_SELECT};
      case GraphWork::matmul:
      case GraphWork::greatest:
      case GraphWork::sum:
        break;
    }
    throw InternalError("work that is not done number by number");
  }

  CudnnDescriptor pointwise(const GraphOp& op) const {
    const Pointwise of_work = pointwise_of(op.work);
    CudnnDescriptor kind(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set_one(kind, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, of_work.mode);
    kind.set(CUDNN_ATTR_POINTWISE_MATH_PREC, of_work.computes);
    if (of_work.axis >= 0) kind.set(CUDNN_ATTR_POINTWISE_AXIS, std::span(&of_work.axis, 1));
    kind.finish();
    CudnnDescriptor made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, of(op.a))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, of(op.to));
    if (op.b >= 0) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, of(op.b));
    if (op.c >= 0) made.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, of(op.c));
    return made;
  }

  const OperatorGraph& graph_;
  std::vector<std::optional<CudnnDescriptor>> tensors_;
  std::vector<CudnnDescriptor> ops_;
};

/// What cuDNN's heuristics propose, the best first: those alone that its own checks of support let pass.
std::vector<CudnnDescriptor> proposals(const CudnnDescriptor& graph, const CudnnTarget& target) {
  CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  set_one(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A);
  if (target.device) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.device);
  if (cudnn().finalize(heuristics.get()) != CUDNN_STATUS_SUCCESS) return {};
  constexpr std::int64_t kMost = 8;
  std::vector<CudnnDescriptor> found;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < kMost; ++i) raw.push_back(found.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  std::int64_t count = 0;
  check(cudnn().get_attribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, kMost,
                              &count, raw.data()),
        "tell its engines");
  found.erase(found.begin() + std::min(count, kMost), found.end());
  return found;
}

std::int64_t number_of(const CudnnDescriptor& descriptor, cudnnBackendAttributeName_t name) {
  std::int64_t number = 0, count = 0;
  check(cudnn().get_attribute(descriptor.get(), name, CUDNN_TYPE_INT64, 1, &count, &number), "tell of a plan");
  return number;
}

}  // namespace

const Cudnn* find_cudnn() {
  static const std::optional<Cudnn> found = load();
  return found ? &*found : nullptr;
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  check(cudnn().create_descriptor(type, &made), "make a descriptor");
  descriptor_ = {made, [](void* descriptor) { cudnn().destroy_descriptor(descriptor); }};
}
CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                      std::int64_t count, const void* values) {
  check(cudnn().set_attribute(get(), name, type, count, values), "take an attribute");
  return *this;
}
CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
  return set(name, CUDNN_TYPE_INT64, std::ssize(values), values.data());
}
CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t name, bool value) {
  return set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
}
CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
  return set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}
CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t name,
                                      std::span<const cudnnBackendDescriptor_t> values) {
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::ssize(values), values.data());
}
void CudnnDescriptor::finish() {
  check(cudnn().finalize(get()), "finish a descriptor");
}

CudnnDescriptor described_gpu(const std::string& json) {
  CudnnDescriptor device(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  device.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, std::ssize(json), json.data()).finish();
  return device;
}

std::unique_ptr<CudnnPlan> compile_plan(const OperatorGraph& graph, const CudnnTarget& target, CudnnKernels& kernels) {
  const Described described(graph);
  const CudnnDescriptor whole = described.graph(target);
  if (!kernels) {
    auto made = std::make_shared<CudnnDescriptor>(CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR);
    made->set(CUDNN_ATTR_KERNEL_CACHE_OPERATION_GRAPH, whole).finish();
    kernels = std::move(made);
  }
  for (const CudnnDescriptor& proposal : proposals(whole, target)) {
    CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, proposal);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_KERNEL_CACHE, *kernels);
    if (target.device) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.device);
    if (target.handle) set_one(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
    if (cudnn().finalize(plan.get()) != CUDNN_STATUS_SUCCESS) continue;
    CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t raw = engine.get();
    std::int64_t count = 0;
    check(cudnn().get_attribute(proposal.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                &raw),
          "tell a plan's engine");
    const std::int64_t workspace = number_of(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
    if (workspace > kMostWorkspace) continue;
    std::vector<CudnnDescriptor> made_of = described.all();
    made_of.insert(made_of.end(), {whole, proposal});
    return std::make_unique<CudnnPlan>(
        CudnnPlan{std::move(plan), workspace, number_of(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX), std::move(made_of)});
  }
  return nullptr;
}

void run_plan(const CudnnPlan& plan, cudnnHandle_t handle, std::span<const GraphMemory> memory, void* workspace) {
  std::vector<std::int64_t> identifiers;
  std::vector<void*> addresses;
  for (const GraphMemory& one : memory) identifiers.push_back(one.tensor + 1), addresses.push_back(one.memory);
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, identifiers)
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::ssize(addresses), addresses.data())
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace)
      .finish();
  check(cudnn().execute(handle, plan.plan.get(), pack.get()), "run a plan");
}

}  // namespace braid::kernels::cuda
