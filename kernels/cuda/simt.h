#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "kernels/cuda/bf16.h"
#include "kernels/matrix.h"

/// What kernels are written with. nvcc compiles them for GPUs; tests compile the same files for the processor, where a
/// header of theirs stands for CUDA's (tests/kernels/cuda_on_cpu/simt_on_cpu.h): so launches go through `launch`, and
/// shared memory comes from `shared_memory`.
#ifdef __CUDACC__
#include <cuda_runtime.h>

#include "kernels/cuda/errors.h"
#else
#include <simt_on_cpu.h>
#endif

namespace braid::kernels::cuda {

/// Memory of the device for one call, given back once what was launched until the end of its scope has ended.
class Scratch {
 public:
  explicit Scratch(std::int64_t bytes);
  /// A copy of what is on the host, which is read before this returns.
  Scratch(const void* host, std::int64_t bytes);
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();
  void* memory() const { return memory_; }

 private:
  void* memory_ = nullptr;
  std::int64_t taken_ = 0;
};

/// So many numbers of scratch memory, or a copy of the host's.
template <typename Number>
class Numbers {
 public:
  explicit Numbers(std::int64_t count) : scratch_(count * static_cast<std::int64_t>(sizeof(Number))) {}
  explicit Numbers(std::span<const Number> host)
      : scratch_(host.data(), static_cast<std::int64_t>(host.size_bytes())) {}
  Number* data() const { return static_cast<Number*>(scratch_.memory()); }

 private:
  Scratch scratch_;
};

#ifdef __CUDACC__
/// The stream that all operators of this thread's device run in.
cudaStream_t compute_stream();
/// Something was put into it that a graph of such calls is to be known by: a kernel by its address.
void note_call(std::uint64_t what);

/// Launches `kernel` on so many blocks of so many threads, each block with so many bytes of shared memory.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 blocks, unsigned threads, std::size_t shared_bytes,
            Arguments... arguments) {
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0) return;
  constexpr std::size_t kAlwaysThere = 48 << 10;
  if (shared_bytes > kAlwaysThere)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)));
  kernel<<<blocks, threads, shared_bytes, compute_stream()>>>(static_cast<Parameters>(arguments)...);
  check(cudaGetLastError());
  note_call(reinterpret_cast<std::uintptr_t>(kernel));
}

/// The block's shared memory.
template <typename Number>
__device__ Number* shared_memory() {
  extern __shared__ __align__(16) unsigned char bytes[];
  return reinterpret_cast<Number*>(bytes);
}
#endif

/// Neighbours of a row that a thread has at once.
template <int count>
struct Several {
  float numbers[count];
  __device__ float& operator[](int i) { return numbers[i]; }
  __device__ float operator[](int i) const { return numbers[i]; }
};
/// Where rows lie on 16 bytes they are so many, as few threads then keep the memory busy; else 1.
inline constexpr int kSeveral = 8;

/// Numbers of a matrix as a kernel reads and writes them: kept as Number, computed with in f32.
template <typename Number>
struct View {
  Number* data = nullptr;
  std::int64_t rows = 0, columns = 0, stride = 0;

  /// Whether kSeveral can be had at once, at columns that are multiples of it.
  bool on_16_bytes() const { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && stride % kEach == 0; }

  __device__ float operator()(std::int64_t row, std::int64_t column) const {
    return static_cast<float>(data[row * stride + column]);
  }
  __device__ void set(std::int64_t row, std::int64_t column, float number) const {
    data[row * stride + column] = static_cast<Number>(number);
  }
  __device__ void add(std::int64_t row, std::int64_t column, float number) const {
    set(row, column, (*this)(row, column) + number);
  }

  template <int count>
  __device__ Several<count> load(std::int64_t row, std::int64_t column) const {
    Several<count> loaded;
    if constexpr (count == 1) {
      loaded[0] = (*this)(row, column);
    } else {
      const auto* from = reinterpret_cast<const Sixteen*>(data + row * stride + column);
      for (int part = 0; part < count / kEach; ++part) {
        const Sixteen bytes = from[part];
        for (int i = 0; i < kEach; ++i) loaded[part * kEach + i] = static_cast<float>(bytes.numbers[i]);
      }
    }
    return loaded;
  }
  template <int count>
  __device__ void store(std::int64_t row, std::int64_t column, const Several<count>& numbers) const {
    if constexpr (count == 1) {
      set(row, column, numbers[0]);
    } else {
      auto* to = reinterpret_cast<Sixteen*>(data + row * stride + column);
      for (int part = 0; part < count / kEach; ++part) {
        Sixteen bytes;
        for (int i = 0; i < kEach; ++i) bytes.numbers[i] = Plain(numbers[part * kEach + i]);
        to[part] = bytes;
      }
    }
  }

 private:
  using Plain = std::remove_const_t<Number>;
  static constexpr int kEach = 16 / sizeof(Number);
  struct alignas(16) Sixteen {
    Plain numbers[kEach];
  };
};

/// A row of numbers as a view.
template <typename Number>
View<Number> row_view(Number* numbers, std::int64_t count) {
  return {numbers, 1, count, count};
}

/// Calls body with kSeveral or 1 as a type: how many of `columns` a thread may have at once of all views.
template <typename Body, typename... Views>
void with_several(std::int64_t columns, const Body& body, const Views&... views) {
  if (columns % kSeveral == 0 && (views.on_16_bytes() && ...)) {
    body(std::integral_constant<int, kSeveral>());
  } else {
    body(std::integral_constant<int, 1>());
  }
}

template <typename Number, typename Float>
View<Number> view(BasicMatrix<Float> matrix) {
  using Address = std::conditional_t<std::is_const_v<Float>, const std::remove_const_t<Number>, Number>;
  return {const_cast<Number*>(reinterpret_cast<const Address*>(matrix.data)), matrix.rows, matrix.columns,
          matrix.stride};
}

/// Calls body(Number()) with the type of the numbers.
template <typename Body>
void with_type(costmodel::DataType type, const Body& body) {
  switch (type) {
    case costmodel::DataType::f32:
      return body(float());
    case costmodel::DataType::bf16:
      return body(Bf16());
    default:
      break;
  }
  throw InternalError("a matrix of numbers that no kernel computes with");
}

constexpr unsigned kThreads = 256;
constexpr unsigned kWarp = 32;

constexpr unsigned blocks_for(std::int64_t count, std::int64_t each = kThreads) {
  return static_cast<unsigned>((count + each - 1) / each);
}

/// Of a grid.
constexpr std::int64_t kMostRows = 65535;

/// Calls body(row, column) for each number of a matrix.
template <typename Body>
__global__ void for_each_kernel(std::int64_t rows, std::int64_t columns, Body body) {
  const std::int64_t column = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  for (std::int64_t row = blockIdx.y; row < rows; row += gridDim.y) body(row, column);
}
template <typename Body>
void for_each(std::int64_t rows, std::int64_t columns, const Body& body) {
  launch(for_each_kernel<Body>, dim3(blocks_for(columns), static_cast<unsigned>(rows < kMostRows ? rows : kMostRows)),
         kThreads, 0, rows, columns, body);
}

/// Calls body.at<count>(row, column) for each kSeveral neighbours of a matrix, or each number, where views want it so.
template <int count, typename Body>
__global__ void for_several_kernel(std::int64_t rows, std::int64_t columns, Body body) {
  const std::int64_t column = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * count;
  if (column >= columns) return;
  for (std::int64_t row = blockIdx.y; row < rows; row += gridDim.y) body.template at<count>(row, column);
}
template <typename Body, typename... Views>
void for_several(std::int64_t rows, std::int64_t columns, const Body& body, const Views&... views) {
  with_several(
      columns,
      [&](auto several) {
        constexpr int kCount = decltype(several)::value;
        launch(for_several_kernel<kCount, Body>,
               dim3(blocks_for(columns / kCount), static_cast<unsigned>(rows < kMostRows ? rows : kMostRows)), kThreads,
               0, rows, columns, body);
      },
      views...);
}

/// The sum over the warp, the same on all lanes, added in a fixed order.
template <typename Number>
__device__ Number warp_sum(Number number) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) number += __shfl_xor_sync(0xFFFFFFFFU, number, distance);
  return number;
}
__device__ inline float warp_max(float number) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(0xFFFFFFFFU, number, distance);
    number = number > other ? number : other;
  }
  return number;
}

/// The same over the block, whose threads all call it; `shared` has room for a number of each warp, and is free again
/// once the block has met.
template <typename Number>
__device__ Number block_sum(Number number, Number* shared) {
  number = warp_sum(number);
  __syncthreads();
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = number;
  __syncthreads();
  Number sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / kWarp; ++warp) sum += shared[warp];
  return sum;
}
__device__ inline float block_max(float number, float* shared) {
  number = warp_max(number);
  __syncthreads();
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = number;
  __syncthreads();
  float most = shared[0];
  for (unsigned warp = 1; warp < blockDim.x / kWarp; ++warp) most = most > shared[warp] ? most : shared[warp];
  return most;
}
constexpr std::size_t kSumBytes = kThreads / kWarp * sizeof(double);

}  // namespace braid::kernels::cuda
