#include <map>
#include <numeric>
#include <tuple>

#include "kernels/cuda/gpu_state.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/simt.h"

namespace braid::kernels::cuda {
namespace {

using costmodel::DataType;

cudaDataType_t cuda_type(DataType type) {
  return type == DataType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

/// The largest power of two up to 256 that divides the address.
std::uint32_t alignment_of(const void* address) {
  return static_cast<std::uint32_t>(std::gcd(reinterpret_cast<std::uintptr_t>(address) | 256U, std::uintptr_t{256}));
}

/// A row-major matrix as cuBLASLt sees it: its columns are the rows.
struct Layout {
  std::int64_t rows = 0, columns = 0, stride = 0;
  DataType type = DataType::f32;
  std::uint32_t alignment = 0;
  explicit Layout(ConstMatrix matrix)
      : rows(matrix.columns),
        columns(matrix.rows),
        stride(matrix.stride),
        type(matrix.type),
        alignment(alignment_of(matrix.data)) {}
  auto operator<=>(const Layout&) const = default;
};

using Key = std::tuple<Layout, bool, Layout, bool, Layout>;

/// A product of these shapes, with the algorithm that the library's heuristic puts first.
class Plan {
 public:
  Plan(const Layout& first, bool first_across, const Layout& second, bool second_across, const Layout& result) {
    const bool tf32 = gpu_state().arithmetic == Arithmetic::tf32;
    check(cublasLtMatmulDescCreate(&operation_, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
    set(CUBLASLT_MATMUL_DESC_TRANSA, first_across);
    set(CUBLASLT_MATMUL_DESC_TRANSB, second_across);
    a_ = make(first), b_ = make(second), d_ = make(result);
    cublasLtMatmulPreferenceOpaque_t preference{};
    check(cublasLtMatmulPreferenceInit(&preference));
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t which, auto value) {
      check(cublasLtMatmulPreferenceSetAttribute(&preference, which, &value, sizeof value));
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{GpuState::kWorkspace});
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, first.alignment);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, second.alignment);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, result.alignment);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, result.alignment);
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(gpu_state().cublas, operation_, a_, b_, d_, d_, &preference, 1, &found, &count);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) check(status);
    supported_ = count > 0 && found.state == CUBLAS_STATUS_SUCCESS;
    algorithm_ = found.algo;
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    for (const cublasLtMatrixLayout_t layout : {a_, b_, d_}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(operation_);
  }

  /// Whether the library has an algorithm for it: rows that begin at odd numbers may have none.
  bool supported() const { return supported_; }
  void run(const void* a, const void* b, void* d) const {
    const float one = 1, zero = 0;
    const GpuState& gpu = gpu_state();
    check(cublasLtMatmul(gpu.cublas, operation_, &one, a, a_, b, b_, &zero, d, d_, d, d_, &algorithm_, gpu.workspace,
                         GpuState::kWorkspace, gpu.stream));
    note_call(kProductCall);
  }

 private:
  void set(cublasLtMatmulDescAttributes_t which, bool across) {
    const cublasOperation_t value = across ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(cublasLtMatmulDescSetAttribute(operation_, which, &value, sizeof value));
  }
  static cublasLtMatrixLayout_t make(const Layout& layout) {
    cublasLtMatrixLayout_t made = nullptr;
    check(cublasLtMatrixLayoutCreate(&made, cuda_type(layout.type), static_cast<std::uint64_t>(layout.rows),
                                     static_cast<std::uint64_t>(layout.columns), layout.stride));
    return made;
  }

  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
  bool supported_ = false;
};

}  // namespace

/// cuBLASLt's matrices are column-major: of row-major ones it sees the transposes, and cᵀ = op(b)ᵀ op(a)ᵀ.
void large_matmul(ConstMatrix a, Transpose a_transpose, ConstMatrix b, Transpose b_transpose, Matrix c) {
  static thread_local std::map<Key, Plan> plans;
  const Layout first(b), second(a), result{ConstMatrix(c)};
  const bool first_across = b_transpose == Transpose::yes, second_across = a_transpose == Transpose::yes;
  const Key key{first, first_across, second, second_across, result};
  auto plan = plans.find(key);
  if (plan == plans.end())
    plan = plans
               .emplace(std::piecewise_construct, std::forward_as_tuple(key),
                        std::forward_as_tuple(first, first_across, second, second_across, result))
               .first;
  if (!plan->second.supported()) return matmul(1, a, a_transpose, b, b_transpose, 0, c);
  plan->second.run(b.data, a.data, c.data);
}

}  // namespace braid::kernels::cuda
