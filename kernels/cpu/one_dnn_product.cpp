#include "kernels/cpu/one_dnn_product.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "base/mixed_hash.h"
#include "base/parallel.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/scratch.h"
#include "kernels/elementwise.h"

namespace braid::kernels::cpu {
namespace {

using dnnl::memory;

dnnl::engine& engine() {
  static dnnl::engine processor(dnnl::engine::kind::cpu, 0);
  return processor;
}

dnnl::stream& stream() {
  static dnnl::stream calls(engine());
  return calls;
}

memory::desc dense(std::int64_t rows, std::int64_t columns) {
  return memory::desc({rows, columns}, memory::data_type::f32, memory::format_tag::ab);
}

dnnl::matmul::primitive_desc describe(std::int64_t rows, const memory::desc& weight, bool bias) {
  const std::int64_t in = weight.dims()[0], out = weight.dims()[1];
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  // Whatever the environment says.
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  const auto product = bias ? dnnl::matmul::desc(dense(rows, in), weight, dense(1, out), dense(rows, out))
                            : dnnl::matmul::desc(dense(rows, in), weight, dense(rows, out));
  return dnnl::matmul::primitive_desc(product, attributes, engine());
}

/// What a primitive is compiled for. oneDNN plans for as many threads as there are when it is made.
struct PrimitiveKey {
  std::int64_t rows = 0;
  memory::desc weight;
  bool bias = false;
  int threads = 0;

  bool operator==(const PrimitiveKey&) const = default;
};

struct PrimitiveHash {
  std::size_t operator()(const PrimitiveKey& key) const {
    const std::vector<std::int64_t> sides = key.weight.dims();
    return MixedHash(key.rows).add(sides[0]).add(sides[1]).add(2 * key.threads + (key.bias ? 1 : 0)).value();
  }
};

struct Primitive {
  dnnl::matmul call;
  memory::desc scratchpad;
};

using PrimitiveCache = std::unordered_map<PrimitiveKey, Primitive, PrimitiveHash>;

PrimitiveCache& primitive_cache() {
  thread_local PrimitiveCache cache;
  return cache;
}

/// oneDNN's name of the quick matmul begins so, its older one's with "gemm".
bool is_quick(const dnnl::matmul::primitive_desc& description) {
  return std::string_view(description.impl_info_str()).starts_with("brg");
}

/// Compiling takes a tenth of a millisecond and more, as long as a small product itself, and all layers of a shape can
/// share the result.
const Primitive& primitive_for(const PrimitiveKey& key) {
  constexpr std::size_t kMost = 1024;
  PrimitiveCache& cache = primitive_cache();
  if (const auto found = cache.find(key); found != cache.end()) return found->second;
  if (cache.size() >= kMost) cache.clear();
  const auto description = describe(key.rows, key.weight, key.bias);
  BRAID_CHECK(is_quick(description), "oneDNN took {} for {} rows", description.impl_info_str(), key.rows);
  return cache.emplace(key, Primitive{dnnl::matmul(description), description.scratchpad_desc()}).first->second;
}

bool is_dense(ConstMatrix x) {
  return x.stride == x.columns || x.rows <= 1;
}

/// Rows that one call takes: microbatches are of any length, and each new number of rows would be compiled anew and
/// then keep about 40 kB. So blocks of kMostRows and its halves down to kRowBlock, the largest first, and the last rows
/// in a multiple of kRowGrain that reaches back into rows already done. As rows do not depend on each other, nor does
/// the result.
constexpr std::int64_t kMostRows = 1024;
constexpr std::int64_t kRowBlock = 64;
constexpr std::int64_t kRowGrain = 8;

/// Calls work(first, last) for runs of rows that cover [0, rows).
template <typename Work>
void for_row_runs(std::int64_t rows, const Work& work) {
  std::int64_t done = 0;
  for (std::int64_t block = kMostRows; block >= kRowBlock; block /= 2) {
    for (; rows - done >= block; done += block) work(done, done + block);
  }
  if (done == rows) return;
  const std::int64_t left = (rows - done + kRowGrain - 1) / kRowGrain * kRowGrain;
  if (left <= rows) return work(rows - left, rows);
  if (left > kRowGrain) work(0, left - kRowGrain);
  work(std::max<std::int64_t>(rows - kRowGrain, 0), rows);
}

/// Calls work(count) for each number of rows that for_row_runs gives in one run, fewer rows than kRowGrain aside.
template <typename Work>
void for_run_lengths(const Work& work) {
  for (std::int64_t rows = kMostRows; rows >= kRowBlock; rows /= 2) work(rows);
  for (std::int64_t rows = kRowGrain; rows < kRowBlock; rows += kRowGrain) work(rows);
}

PrimitiveKey key_of(std::int64_t rows, const memory& weight, bool bias) {
  return {rows, weight.get_desc(), bias, thread_count()};
}

/// y = x · weight + bias for dense rows.
void multiply_dense(ConstMatrix x, const memory& weight, const float* bias, Matrix y) {
  thread_local Scratch scratchpad;
  const Primitive& primitive = primitive_for(key_of(x.rows, weight, bias != nullptr));
  const auto scratch_numbers = static_cast<std::int64_t>(primitive.scratchpad.get_size() / sizeof(float)) + 1;
  std::unordered_map<int, memory> arguments{
      {DNNL_ARG_SRC, memory(dense(x.rows, x.columns), engine(), const_cast<float*>(x.data))},
      {DNNL_ARG_WEIGHTS, weight},
      {DNNL_ARG_DST, memory(dense(y.rows, y.columns), engine(), y.data)},
      {DNNL_ARG_SCRATCHPAD, memory(primitive.scratchpad, engine(), scratchpad.at_least(scratch_numbers))}};
  if (bias) arguments.emplace(DNNL_ARG_BIAS, memory(dense(1, y.columns), engine(), const_cast<float*>(bias)));
  primitive.call.execute(stream(), arguments);
  stream().wait();
}

}  // namespace

std::optional<OneDnnProduct> OneDnnProduct::packed(const float* weight, std::int64_t in, std::int64_t out,
                                                   std::int64_t row_step, std::int64_t column_step) {
  // The layout that it likes best is the same for any number of rows.
  constexpr std::int64_t kTypicalRows = 512;
  const memory::desc any({in, out}, memory::data_type::f32, memory::format_tag::any);
  const auto description = describe(kTypicalRows, any, false);
  if (!is_quick(description)) return std::nullopt;
  OneDnnProduct product(memory(description.weights_desc(), engine()));
  product.refill(weight, row_step, column_step);
  return product;
}

void OneDnnProduct::refill(const float* weight, std::int64_t row_step, std::int64_t column_step) {
  const memory::desc plain(weight_.get_desc().dims(), memory::data_type::f32, memory::dims{row_step, column_step});
  memory from(plain, engine(), const_cast<float*>(weight));
  dnnl::reorder(from, weight_).execute(stream(), from, weight_);
  stream().wait();
}

std::span<std::byte> OneDnnProduct::storage() {
  return {static_cast<std::byte*>(weight_.get_data_handle()), static_cast<std::size_t>(bytes())};
}

std::int64_t OneDnnProduct::bytes() const {
  return static_cast<std::int64_t>(weight_.get_desc().get_size());
}

void OneDnnProduct::compile(bool bias) const {
  for_run_lengths([&](std::int64_t rows) { primitive_for(key_of(rows, weight_, bias)); });
}

/// Rows that are apart go by way of dense copies: the quick matmul takes none else.
void OneDnnProduct::multiply(ConstMatrix x, const float* bias, Matrix y) const {
  thread_local Scratch dense_x_numbers, dense_y_numbers;
  ConstMatrix dense_x = x;
  if (!is_dense(x)) {
    const Matrix staged(dense_x_numbers.at_least(x.rows * x.columns), x.rows, x.columns);
    copy(x, staged);
    dense_x = staged;
  }
  const Matrix dense_y = is_dense(y) ? y : Matrix(dense_y_numbers.at_least(y.rows * y.columns), y.rows, y.columns);
  for_row_runs(x.rows, [&](std::int64_t first, std::int64_t last) {
    multiply_dense(dense_x.row_range(first, last), weight_, bias, dense_y.row_range(first, last));
  });
  if (!is_dense(y)) copy(dense_y, y);
}

std::size_t OneDnnProduct::compiled() {
  return primitive_cache().size();
}

}  // namespace braid::kernels::cpu
