#include <dnnl.h>
#include <fmt/format.h>

#include "kernels/cpu/lanes.h"
#include "kernels/host_memory.h"

namespace braid::kernels {
namespace cpu {
namespace {

constexpr Kernels kKernels = {
    .pack_linear = pack_linear,
    .embedding_forward = embedding_forward,
    .scatter_rows = scatter_rows,
    .rms_norm_forward = rms_norm_forward,
    .rms_norm_again = rms_norm_again,
    .rms_norm_backward = rms_norm_backward,
    .layer_norm_forward = layer_norm_forward,
    .layer_norm_again = layer_norm_again,
    .layer_norm_backward = layer_norm_backward,
    .head_norm_forward = head_norm_forward,
    .head_norm_backward = head_norm_backward,
    .rope_forward = rope_forward,
    .rope_backward = rope_backward,
    .attention_forward = attention_forward,
    .attention_backward = attention_backward,
    .activation_forward = activation_forward,
    .activation_backward = activation_backward,
    .add = add,
    .copy = copy,
    .fill = fill,
    .scale = scale,
    .scale_columns = scale_columns,
    .add_row = add_row,
    .sum_columns = sum_columns,
    .low_rank_squares = low_rank_squares,
    .inverse_roots = inverse_roots,
    .sparse_forward = sparse_forward,
    .sparse_backward = sparse_backward,
    .matmul = matmul,
    .matmul_group = matmul_group,
    .dropout = dropout,
    .cross_entropy = cross_entropy,
    .cross_entropy_share = cross_entropy_share,
    .cross_entropy_of_shares = cross_entropy_of_shares,
    .squared_norms = squared_norms,
    .adamw = adamw,
    .adamw_group = adamw_group,
    .outer_sums = outer_sums,
};

class CpuDevice final : public HostMemoryDevice {
 public:
  std::string_view name() const override { return "cpu"; }
  const Kernels& kernels() const override { return kKernels; }
  bool drops_in_products() const override { return false; }
  std::vector<std::string> library_versions() const override {
    const dnnl_version_t* version = dnnl_version();
    return {fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch),
            fmt::format("CPU kernels {} lanes wide", kLanes)};
  }
};

}  // namespace
}  // namespace cpu

// All that a library of these kernels shows (cmake/cpu_kernels.cmake).
[[gnu::visibility("default")]] std::unique_ptr<Device> make_cpu_device() {
  return std::make_unique<cpu::CpuDevice>();
}

}  // namespace braid::kernels
