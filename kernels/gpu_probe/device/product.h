#pragma once

#include <memory>

#include <cublasLt.h>

#include "kernels/gpu_probe/device/cuda_check.h"
#include "kernels/gpu_probe/products.h"

namespace braid::gpu_probe {

/// cuBLASLt and the scratch memory that its algorithms may use: 32 MiB, what PyTorch gives them on Hopper.
class ProductLibrary {
 public:
  ProductLibrary();
  ~ProductLibrary();
  ProductLibrary(const ProductLibrary&) = delete;
  ProductLibrary& operator=(const ProductLibrary&) = delete;

  cublasLtHandle_t handle() const { return handle_; }
  const DeviceBuffer& scratch() const { return scratch_; }

 private:
  cublasLtHandle_t handle_ = nullptr;
  DeviceBuffer scratch_;
};

/// A linear's product in bf16, summed in f32, by the algorithm that cuBLASLt's heuristic puts first.
class Product {
 public:
  /// `library` must outlive it. Throws Failure when cuBLASLt has no algorithm.
  Product(const ProductLibrary& library, const Point& linear);

  /// Queues D = op(A) · op(B). Pointers are aligned to 256 bytes.
  void launch(void* d, const void* a, const void* b, cudaStream_t stream) const;

 private:
  struct Release {
    void operator()(cublasLtMatmulDesc_t operation) const { cublasLtMatmulDescDestroy(operation); }
    void operator()(cublasLtMatrixLayout_t layout) const { cublasLtMatrixLayoutDestroy(layout); }
  };
  using Operation = std::unique_ptr<cublasLtMatmulDescOpaque_t, Release>;
  using Matrix = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Release>;

  static Operation make_operation(const ProductLayout& layout);
  static Matrix make_matrix(std::int64_t rows, std::int64_t columns);
  cublasLtMatmulAlgo_t first_algorithm() const;

  const ProductLibrary& library_;
  Operation operation_;
  Matrix a_, b_, d_;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace braid::gpu_probe
