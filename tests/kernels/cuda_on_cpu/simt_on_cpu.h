#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>

/// What the kernels of kernels/cuda use of CUDA, on this processor: a block's threads are fibers of one thread, which
/// take turns at barriers and shuffles, in an order that is drawn anew for every turn. Blocks run one after another.
/// Shared memory is of just the bytes that were asked for, NaN at first.
///
/// Threads that wait at unlike places for ever, or a thread that ends while others wait at a barrier, end the launch
/// with an InternalError, where a GPU would hang or go on with nonsense.

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define __grid_constant__

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3() = default;
  dim3(unsigned a, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}  // NOLINT(google-explicit-constructor)
};

// The names are CUDA's. Set before a fiber goes on.
extern thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

void __syncthreads();
void __syncwarp(unsigned mask = 0xFFFFFFFFU);

namespace braid::kernels::cuda {

namespace on_cpu {

/// Seeds the order in which fibers take turns, of this thread.
void set_order(std::uint64_t seed);

/// Has the calling fiber wait for its warp; gives what the lane `from` of it brought along.
std::uint64_t exchange(std::uint64_t mine, unsigned from);

/// The same of all lanes.
void exchange_all(std::uint64_t mine, std::uint64_t (&all)[32]);
/// Every lane's address, on every lane; what it shows must stay until the warp has met again.
template <typename T>
void share(const T* mine, const T* (&all)[32]) {
  std::uint64_t words[32];
  exchange_all(reinterpret_cast<std::uint64_t>(mine), words);
  for (int lane = 0; lane < 32; ++lane) all[lane] = reinterpret_cast<const T*>(words[lane]);
}

/// Copies that are made no earlier than the calling fiber awaits them, in groups; of a count of 0 bytes zeros come. A
/// fiber that ends with some on their way fails.
void copy_later(const void* from, void* to, std::size_t bytes, std::size_t room);
void close_copies();
void await_copies(std::size_t groups_left);

/// Barriers that count arrivals and bytes; their phases are of parity 0, 1, 0 and so on. One that is not begun, or that
/// more arrive at than a phase has, fails.
void begin_barrier(const void* barrier, unsigned arrivals);
void arrive(const void* barrier, unsigned bytes_to_come);
void await_phase(const void* barrier, unsigned parity);
/// Makes a copy at once or some time later, as it is drawn, at the latest when all threads wait; the barrier then
/// counts its bytes. A block that ends with some on their way fails.
void bring_later(const void* barrier, unsigned bytes, std::function<void()> copy);

/// Products that are made at once or when the calling fiber awaits them, as it is drawn, in groups and in their order.
/// A fiber that ends with some on their way fails.
void multiply_later(std::function<void()> product);
void close_products();
void await_products(std::size_t groups_left);

void run(dim3 blocks, unsigned threads, std::size_t shared_bytes, const std::function<void()>& thread);

/// From `hold` on nothing that is called on the device runs until `run_held`, or at all where it is dropped; scratch
/// memory that is given back meanwhile stays until then. So what calls show of the host must have been copied.
void hold();
bool holds();
void run_held();
void drop_held();
/// How many were held and have run, of all threads.
std::int64_t calls_held();
/// Calls it now or when what is held runs.
void call(std::function<void()> work);

void* shared_bytes();

template <typename Number>
Number shuffle(Number number, unsigned from) {
  static_assert(sizeof(Number) <= sizeof(std::uint64_t));
  std::uint64_t word = 0;
  std::memcpy(&word, &number, sizeof number);
  word = exchange(word, from);
  std::memcpy(&number, &word, sizeof number);
  return number;
}

}  // namespace on_cpu

template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 blocks, unsigned threads, std::size_t shared_bytes,
            Arguments... arguments) {
  const auto run = [=] {
    on_cpu::run(blocks, threads, shared_bytes, [&] { kernel(static_cast<Parameters>(arguments)...); });
  };
  if (on_cpu::holds()) return on_cpu::call(run);
  run();
}

template <typename Number>
Number* shared_memory() {
  return static_cast<Number*>(on_cpu::shared_bytes());
}

}  // namespace braid::kernels::cuda

template <typename Number>
Number __shfl_xor_sync(unsigned, Number number, int distance) {
  return braid::kernels::cuda::on_cpu::shuffle(number, threadIdx.x % 32 ^ static_cast<unsigned>(distance));
}
inline std::uint32_t __ballot_sync(unsigned, bool yes) {
  std::uint64_t all[32];
  braid::kernels::cuda::on_cpu::exchange_all(yes ? 1 : 0, all);
  std::uint32_t votes = 0;
  for (unsigned lane = 0; lane < 32; ++lane) votes |= static_cast<std::uint32_t>(all[lane]) << lane;
  return votes;
}
inline int __ffs(int bits) {
  return bits == 0 ? 0 : std::countr_zero(static_cast<unsigned>(bits)) + 1;
}
template <typename Number>
Number __shfl_sync(unsigned, Number number, int from) {
  return braid::kernels::cuda::on_cpu::shuffle(number, static_cast<unsigned>(from) % 32);
}
