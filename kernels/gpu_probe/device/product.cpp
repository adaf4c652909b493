#include "kernels/gpu_probe/device/product.h"

namespace braid::gpu_probe {
namespace {

constexpr std::uint64_t kScratchBytes = std::uint64_t{32} << 20;

}  // namespace

ProductLibrary::ProductLibrary() : scratch_(static_cast<std::int64_t>(kScratchBytes)) {
  check(cublasLtCreate(&handle_), "starting cuBLASLt");
}

ProductLibrary::~ProductLibrary() {
  cublasLtDestroy(handle_);
}

Product::Product(const ProductLibrary& library, const Point& linear) : library_(library) {
  const ProductLayout layout = product_layout(linear);
  operation_ = make_operation(layout);
  a_ = make_matrix(layout.a_rows, layout.a_columns);
  b_ = make_matrix(layout.b_rows, layout.b_columns);
  d_ = make_matrix(layout.m, layout.n);
  algorithm_ = first_algorithm();
}

Product::Operation Product::make_operation(const ProductLayout& layout) {
  cublasLtMatmulDesc_t made = nullptr;
  check(cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describing a product");
  Operation operation(made);
  const auto transpose = [&](cublasLtMatmulDescAttributes_t which, bool yes) {
    const cublasOperation_t value = yes ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(cublasLtMatmulDescSetAttribute(made, which, &value, sizeof value), "describing a product");
  };
  transpose(CUBLASLT_MATMUL_DESC_TRANSA, layout.transpose_a);
  transpose(CUBLASLT_MATMUL_DESC_TRANSB, layout.transpose_b);
  return operation;
}

Product::Matrix Product::make_matrix(std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, CUDA_R_16BF, static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), rows),
        "describing a matrix");
  return Matrix(made);
}

cublasLtMatmulAlgo_t Product::first_algorithm() const {
  constexpr const char* kDoing = "asking cuBLASLt for an algorithm";
  cublasLtMatmulPreferenceOpaque_t preference{};
  check(cublasLtMatmulPreferenceInit(&preference), kDoing);
  check(cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kScratchBytes,
                                             sizeof kScratchBytes),
        kDoing);
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  check(cublasLtMatmulAlgoGetHeuristic(library_.handle(), operation_.get(), a_.get(), b_.get(), d_.get(), d_.get(),
                                       &preference, 1, &found, &count),
        kDoing);
  check(count == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : found.state, kDoing);
  return found.algo;
}

void Product::launch(void* d, const void* a, const void* b, cudaStream_t stream) const {
  const float one = 1, zero = 0;
  check(cublasLtMatmul(library_.handle(), operation_.get(), &one, a, a_.get(), b, b_.get(), &zero, d, d_.get(), d,
                       d_.get(), &algorithm_, library_.scratch().data(), kScratchBytes, stream),
        "starting a product");
}

}  // namespace braid::gpu_probe
