#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/cuda/attention_graph.h"
#include "kernels/cuda/gpu_cudnn.h"

/// That cuDNN has kernels for the graphs of attention, compiled here for GPUs that are not here: no_driver.cpp stands
/// for their driver. What those kernels compute is not run.
namespace braid::kernels::cuda {
namespace {

/// What cuDNN asks of a GPU, by its compute capability.
std::string described(int capability, int multiprocessors, int shared_bytes) {
  return fmt::format(
      R"({{"cudaDeviceId":0,"deviceVer":{},"driverVer":13000,"totalGlobalMem":80000000000,)"
      R"("maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
      R"("multiProcessorCount":{},"warpSize":32,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":{},)"
      R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,)"
      R"("maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,"smClockRateKHz":1755000,)"
      R"("memClockRateKHz":2619000,"l2CacheSize":50000000,"deviceName":"described"}})",
      capability, multiprocessors, shared_bytes);
}

struct Gpu {
  const char* name;
  std::string json;
  std::int64_t engine;  ///< cuDNN 9's of flash attention: 1 by mma, from sm_80 on; 2 by wgmma, of sm_90
};
const Gpu kGpus[] = {{"H100", described(900, 132, 232448), 2},
                     {"A100", described(800, 108, 166912), 1},
                     {"A40", described(860, 84, 101376), 1}};

/// As a layer holds them, all in one matrix.
AttentionLayout layout_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t head_dim) {
  const std::int64_t fused = (heads + 2 * kv_heads) * head_dim;
  return {heads, kv_heads, head_dim, fused, fused, fused, heads * head_dim, heads};
}

/// How many kernels cuDNN has loaded.
int kernels_loaded() {
  static const auto counted =
      reinterpret_cast<int (*)()>(::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), "no_driver_kernels"));
  return counted();
}

class CudnnPlans : public ::testing::TestWithParam<Gpu> {
 protected:
  void SetUp() override {
    if (!find_cudnn()) GTEST_SKIP() << "no cuDNN 9.10 or later here";
  }
};

TEST_P(CudnnPlans, AreFlashAttentionOfEveryHeadSize) {
  const CudnnDescriptor gpu = described_gpu(GetParam().json);
  const AttentionLayout layouts[] = {layout_of(32, 8, 128), layout_of(32, 32, 64), layout_of(32, 32, 80),
                                     layout_of(32, 32, 96), layout_of(4, 2, 16)};
  for (const AttentionLayout& layout : layouts) {
    CudnnKernels kernels;
    const auto plan = compile_plan(attention_graph(layout, 4, 2048).graph, {nullptr, &gpu}, kernels);
    ASSERT_TRUE(plan) << "heads of " << layout.head_dim;
    EXPECT_EQ(plan->engine, GetParam().engine) << "heads of " << layout.head_dim;
    EXPECT_LT(plan->workspace, 1 << 20) << "of which nothing is planned";
  }
}

/// Sequences of other numbers and lengths take the first one's kernel.
TEST_P(CudnnPlans, OfOtherSizesTakeNoOtherKernel) {
  const CudnnDescriptor gpu = described_gpu(GetParam().json);
  const AttentionLayout layout = layout_of(32, 8, 128);
  CudnnKernels kernels;
  const auto compile = [&](std::int64_t sequences, std::int64_t longest) {
    EXPECT_TRUE(compile_plan(attention_graph(layout, sequences, longest).graph, {nullptr, &gpu}, kernels));
    return kernels_loaded();
  };
  const int before = kernels_loaded(), first = compile(4, 2048);
  EXPECT_GT(first, before);
  for (const auto& [sequences, longest] : {std::pair(1, 64), {16, 512}, {3, 1152}, {1, 16384}, {200, 64}})
    EXPECT_EQ(compile(sequences, longest), first) << sequences << " sequences of " << longest;
}

/// Of heads that no engine has cuDNN says so, and the caller computes by itself.
TEST_P(CudnnPlans, OfOddHeadsThereAreNone) {
  const CudnnDescriptor gpu = described_gpu(GetParam().json);
  CudnnKernels kernels;
  EXPECT_FALSE(compile_plan(attention_graph(layout_of(4, 4, 12), 2, 64).graph, {nullptr, &gpu}, kernels));
}

INSTANTIATE_TEST_SUITE_P(Gpus, CudnnPlans, ::testing::ValuesIn(kGpus),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace braid::kernels::cuda
