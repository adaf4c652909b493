#include "kernels/cuda/gpu_driver.h"
#include "kernels/cuda/tile_map.h"

namespace braid::kernels::cuda {
namespace {

static_assert(sizeof(TileMap) == sizeof(CUtensorMap) && alignof(TileMap) >= alignof(CUtensorMap));

int attribute(cudaDeviceAttr which) {
  int ordinal = 0, value = 0;
  check(cudaGetDevice(&ordinal));
  check(cudaDeviceGetAttribute(&value, which, ordinal));
  return value;
}

}  // namespace

TileMap map_tiles(ConstMatrix matrix, int box_rows) {
  static const auto encode = driver<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  TileMap map;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(matrix.columns), static_cast<cuuint64_t>(matrix.rows)};
  const cuuint64_t stride = static_cast<cuuint64_t>(matrix.stride) * 2;
  const cuuint32_t box[] = {64, static_cast<cuuint32_t>(box_rows)}, steps[] = {1, 1};
  const CUresult result =
      encode(reinterpret_cast<CUtensorMap*>(&map), CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<float*>(matrix.data),
             sizes, &stride, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  BRAID_CHECK(result == CUDA_SUCCESS, "the driver maps no tiles of [{}, {}] ({})", matrix.rows, matrix.columns,
              static_cast<int>(result));
  return map;
}

bool has_warpgroups() {
  static thread_local const bool has =
      attribute(cudaDevAttrComputeCapabilityMajor) == 9 && attribute(cudaDevAttrComputeCapabilityMinor) == 0;
  return has;
}

int multiprocessors() {
  static thread_local const int count = attribute(cudaDevAttrMultiProcessorCount);
  return count;
}

}  // namespace braid::kernels::cuda
