#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "kernels/cuda/simt.h"

/// What the processor does with CUDA kernels, of which the tests of all others rest on: it must find what a GPU
/// forgives at times.
namespace braid::kernels::cuda {
namespace {

__global__ void reverse_kernel(int* numbers, bool waits) {
  int* shared = shared_memory<int>();
  shared[threadIdx.x] = numbers[threadIdx.x];
  if (waits) __syncthreads();
  numbers[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

TEST(SimtOnCpu, ThreadsMeetAtBarriersAndAMissingOneShows) {
  std::vector<int> numbers(100), expected(100);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(i), expected[99 - i] = numbers[i];
  std::vector<int> without = numbers;
  launch(reverse_kernel, dim3(1), 100, 100 * sizeof(int), numbers.data(), true);
  EXPECT_EQ(numbers, expected);
  launch(reverse_kernel, dim3(1), 100, 100 * sizeof(int), without.data(), false);
  EXPECT_NE(without, expected);
}

/// Sums of a warp, three times over, so that lanes run ahead.
__global__ void sums_kernel(int* sums) {
  int number = static_cast<int>(threadIdx.x);
  for (int i = 0; i < 3; ++i) number = warp_sum(number) + static_cast<int>(threadIdx.x % kWarp);
  sums[threadIdx.x] = number + __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x), 5);
}

TEST(SimtOnCpu, LanesExchangeNumbers) {
  std::vector<int> sums(64);
  launch(sums_kernel, dim3(1), 64, 0, sums.data());
  for (int thread = 0; thread < 64; ++thread) {
    const int lanes = 31 * 32 / 2;
    int sum = lanes + thread / 32 * 32 * 32;
    for (int i = 0; i < 2; ++i) sum = 32 * sum + lanes;
    EXPECT_EQ(sums[static_cast<std::size_t>(thread)], sum + thread % 32 + thread / 32 * 32 + 5) << thread;
  }
}

__global__ void half_waits_kernel(bool in_warp) {
  if (threadIdx.x % 2 == 0) return;
  if (in_warp) {
    warp_sum(1);
  } else {
    __syncthreads();
  }
}

__global__ void unlike_waits_kernel() {
  if (threadIdx.x < kWarp / 2) {
    __syncthreads();
  } else {
    __syncwarp();
  }
}

TEST(SimtOnCpu, WhatWouldHangEndsWithAnError) {
  EXPECT_THROW(launch(half_waits_kernel, dim3(2), 64, 0, false), InternalError);
  EXPECT_THROW(launch(half_waits_kernel, dim3(2), 64, 0, true), InternalError);
  EXPECT_THROW(launch(unlike_waits_kernel, dim3(1), kWarp, 0), InternalError);
}

/// Two sums in a row, of which a fast warp must not overwrite the first before slow ones have read it.
__global__ void sums_in_a_row_kernel(float* sums) {
  float sum = 0;
  for (int i = 0; i < 4; ++i) sum = block_sum(static_cast<float>(threadIdx.x) + sum / 1024, shared_memory<float>());
  sums[threadIdx.x] = sum;
}

TEST(SimtOnCpu, SumsOfABlockMayFollowOneAnother) {
  std::vector<float> sums(kThreads);
  launch(sums_in_a_row_kernel, dim3(1), kThreads, kSumBytes, sums.data());
  EXPECT_EQ(std::vector<float>(kThreads, sums[0]), sums);
}

/// Of two warps one has numbers brought, again and again to the same place, which the other adds up.
__global__ void brings_kernel(const int* numbers, int* sum, bool waits_for_numbers, bool waits_for_room) {
  int* shared = shared_memory<int>();
  int* const come = shared + kWarp;
  int* const read = come + 1;
  if (threadIdx.x == 0) {
    on_cpu::begin_barrier(come, 1);
    on_cpu::begin_barrier(read, kWarp);
  }
  __syncthreads();
  for (int turn = 0; turn < 3; ++turn) {
    const auto parity = static_cast<unsigned>(turn % 2);
    if (threadIdx.x == 0) {
      if (waits_for_room) on_cpu::await_phase(read, parity ^ 1U);
      on_cpu::arrive(come, kWarp * sizeof(int));
      on_cpu::bring_later(come, kWarp * sizeof(int),
                          [=] { std::memcpy(shared, numbers + turn * static_cast<int>(kWarp), kWarp * sizeof(int)); });
    } else if (threadIdx.x >= kWarp) {
      if (waits_for_numbers) on_cpu::await_phase(come, parity);
      sum[threadIdx.x - kWarp] += shared[threadIdx.x - kWarp];
      on_cpu::arrive(read, 0);
    }
  }
}

TEST(SimtOnCpu, WhatIsBroughtComesAtItsTimeAndAMissingWaitShows) {
  std::vector<int> numbers(3 * kWarp), expected(kWarp);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<int>(i + 1), expected[i % kWarp] += numbers[i];
  const auto sums = [&](bool waits_for_numbers, bool waits_for_room) {
    std::vector<int> sum(kWarp);
    launch(brings_kernel, dim3(1), 2 * kWarp, (kWarp + 2) * sizeof(int), numbers.data(), sum.data(), waits_for_numbers,
           waits_for_room);
    return sum;
  };
  const auto fails = [&](bool waits_for_numbers, bool waits_for_room) {
    try {
      return sums(waits_for_numbers, waits_for_room) != expected;
    } catch (const InternalError&) {
      return true;
    }
  };
  int missed_numbers = 0, missed_room = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    on_cpu::set_order(seed);
    EXPECT_EQ(sums(true, true), expected);
    missed_numbers += fails(false, true) ? 1 : 0;
    missed_room += fails(true, false) ? 1 : 0;
  }
  EXPECT_GT(missed_numbers, 10);
  EXPECT_GT(missed_room, 10);
}

__global__ void nobody_arrives_kernel() {
  if (threadIdx.x == 0) on_cpu::begin_barrier(shared_memory<int>(), 2);
  __syncthreads();
  if (threadIdx.x == 0) on_cpu::arrive(shared_memory<int>(), 0);
  on_cpu::await_phase(shared_memory<int>(), 0);
}

/// A product is made at the latest when it is awaited, and is not to be read before.
__global__ void multiplies_kernel(int* early) {
  int product = 0;
  on_cpu::multiply_later([&] { product = 6 * 7; });
  on_cpu::close_products();
  early[threadIdx.x] = product;
  on_cpu::await_products(0);
  early[threadIdx.x] += product;
}

TEST(SimtOnCpu, ProductsAreMadeLateOrAtOnce) {
  std::vector<int> numbers(64);
  launch(multiplies_kernel, dim3(1), 64, 0, numbers.data());
  EXPECT_EQ(std::count(numbers.begin(), numbers.end(), 42) + std::count(numbers.begin(), numbers.end(), 84), 64);
  EXPECT_GT(std::count(numbers.begin(), numbers.end(), 42), 10);
  EXPECT_GT(std::count(numbers.begin(), numbers.end(), 84), 10);
  EXPECT_THROW(launch(nobody_arrives_kernel, dim3(1), kWarp, 8), InternalError);
}

__global__ void reads_before_it_writes_kernel(float* number) {
  number[threadIdx.x] = shared_memory<float>()[threadIdx.x];
}

TEST(SimtOnCpu, SharedMemoryBeginsAsNothing) {
  std::vector<float> numbers(32);
  launch(reads_before_it_writes_kernel, dim3(1), 32, 32 * sizeof(float), numbers.data());
  for (const float number : numbers) EXPECT_TRUE(std::isnan(number));
}

TEST(SimtOnCpu, HalvesRoundToTheNearest) {
  for (const float number : {1.0F, -2.5F, 3.0e38F, 1e-40F, 0.0F}) {
    const auto half = static_cast<float>(Bf16(number));
    EXPECT_LE(std::abs(half - number), std::abs(number) / 256 + 1e-40F);
    EXPECT_EQ(static_cast<float>(Bf16(half)), half);
  }
  EXPECT_EQ(static_cast<float>(Bf16(1.00390625F)), 1.0F) << "ties go to even";
  EXPECT_TRUE(std::isnan(static_cast<float>(Bf16(std::nanf("")))));
}

}  // namespace
}  // namespace braid::kernels::cuda
