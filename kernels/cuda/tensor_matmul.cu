#include <algorithm>
#include <utility>

#include "kernels/cuda/side.h"
#include "kernels/cuda/tensor_matmul.h"

namespace braid::kernels::cuda {
namespace {

/// A tile has 16 or 64 columns; K goes by in steps.
constexpr int kRows = kTileRows, kStep = 64, kBlock = kTileBlock;
/// Rows in shared memory are so many numbers longer than what they hold, so that tiles' rows lie in unlike banks.
constexpr int kGap = 8;

struct Product {
  Side left, right;                // `left` has more rows
  std::int64_t depth, depth_each;  // of a part
  void* c;
  std::int64_t row_stride, column_stride;  // of c, by rows of `left` and of `right`
  float alpha, beta;
  bool bf16, vectors;                 // c
  std::int64_t parts, first_partial;  // sums of parts in scratch memory, where there are several
  Drops drops;                        // of what is added to c
  bool swapped;                       // rows of `left` are columns of c
  // Of a launch, in the order of its products: the first block of the product's tiles, which go by row, column and
  // part, and the first of those that add parts up, a row of tiles each.
  std::int64_t column_tiles, first_tile, first_sum;
};

/// Products of a launch.
struct Launched {
  const Product* products;
  std::int32_t count;
  /// The last product that begins at the block or before it.
  __device__ const Product& of(std::int64_t Product::*first, std::int64_t block) const {
    std::int32_t begin = 0, end = count;
    while (end - begin > 1) {
      const std::int32_t middle = (begin + end) / 2;
      (products[middle].*first <= block ? begin : end) = middle;
    }
    return products[begin];
  }
};

struct Tile {
  std::int64_t row, column, part;
  __device__ Tile(const Product& product, std::int64_t block) {
    const std::int64_t place = block - product.first_tile, across = place / product.parts;
    part = place - across * product.parts;
    row = across / product.column_tiles;
    column = across - row * product.column_tiles;
  }
};

/// A tile of one side on its way to shared memory: [rows, K], or `across` [K, rows]. Where it lies within the matrix
/// and is loaded as it stands, a thread's numbers are so many lines apart.
template <int rows, bool across>
struct Stage {
  static constexpr int kLength = across ? rows : kStep;
  static constexpr int kStride = kLength + kGap;
  static constexpr int kNumbers = (across ? kStep : rows) * kStride;
  static constexpr int kEach = rows * kStep / kTogether / kBlock;  // that a thread loads
  static_assert(kEach * kTogether * kBlock == rows * kStep);
  static constexpr int kLines = kBlock / (kLength / kTogether);
  Together loaded[kEach];
  const Bf16* inside = nullptr;  // the thread's first numbers, at K 0
  std::int64_t stride = 0;       // of lines

  __device__ Stage(const Side& side, std::int64_t first_row) {
    if (!side.bf16 || !side.vectors || side.drops.any() || first_row + rows > side.count) return;
    stride = across ? side.depth_stride : side.row_stride;
    const int i = static_cast<int>(threadIdx.x);
    inside = static_cast<const Bf16*>(side.data) + first_row * side.row_stride + line(i) * stride + within(i);
  }
  __device__ static int line(int i) { return i / (kLength / kTogether); }
  __device__ static int within(int i) { return i % (kLength / kTogether) * kTogether; }
  __device__ void load(const Side& side, std::int64_t first_row, std::int64_t first_k, std::int64_t last_k) {
    if (inside && first_k + kStep <= last_k) {
      const Bf16* from = inside + first_k * (across ? stride : 1);
#pragma unroll
      for (int n = 0; n < kEach; ++n) loaded[n] = *reinterpret_cast<const Together*>(from + n * kLines * stride);
      return;
    }
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      const int i = static_cast<int>(threadIdx.x) + n * kBlock;
      loaded[n] = across ? load_together<true>(side, first_row + within(i), first_k + line(i), last_k)
                         : load_together<false>(side, first_row + line(i), first_k + within(i), last_k);
    }
  }
  __device__ void store(Bf16* to) const {
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      const int i = static_cast<int>(threadIdx.x) + n * kBlock;
      *reinterpret_cast<Together*>(to + line(i) * kStride + within(i)) = loaded[n];
    }
  }
};

/// alpha · sum, as it is dropped, and beta · what stands in c.
__device__ void put(const Product& product, std::int64_t row, std::int64_t column, float sum, Drops::Drawn& drawn) {
  const std::int64_t place = row * product.row_stride + column * product.column_stride;
  float number = product.alpha * sum;
  if (product.drops.any())
    number = product.drops.of(number, product.swapped ? column : row, product.swapped ? row : column, drawn);
  if (product.bf16) {
    Bf16* to = static_cast<Bf16*>(product.c) + place;
    if (product.beta != 0) number += product.beta * static_cast<float>(*to);
    *to = Bf16(number);
  } else {
    float* to = static_cast<float*>(product.c) + place;
    *to = product.beta != 0 ? number + product.beta * *to : number;
  }
}

/// Of a tile's sums in shared memory, which lie as c does: lines of `kLength` that are neighbours there.
template <int columns>
constexpr int kSumNumbers = std::max(kRows*(columns + 4), columns*(kRows + 4));

/// Eight neighbours of c, of sums from `sums` on: `before` is what stood there.
__device__ Together put_together(const Product& product, std::int64_t line, std::int64_t within, const float* sums,
                                 const Together& before) {
  const std::uint32_t kept = product.drops.any() ? product.drops.kept_together(line, within) : 0xFFU;
  const float scale = product.drops.any() ? product.drops.scale : 1.0F;
  Together together;
#pragma unroll
  for (int i = 0; i < kTogether / 2; ++i) {
    const auto put_one = [&](int which) {
      const float sum = product.alpha * sums[2 * i + which];
      float number = (kept >> (2 * i + which) & 1U) == 0 ? 0.0F : sum * scale;
      if (product.beta != 0) number += product.beta * static_cast<float>(half_of(before.halves[i], which));
      return Bf16(number);
    };
    together.halves[i] = pack(put_one(0), put_one(1));
  }
  return together;
}

/// By way of shared memory, so that neighbours of c are read and written together, and all is asked for before the
/// first comes.
template <int columns>
__device__ void put_tile(const Product& product, std::int64_t first_row, std::int64_t first_column,
                         const Sums (&sums)[columns / 8], float* shared) {
  const bool swapped = product.swapped;
  const int length = swapped ? kRows : columns, stride = length + 4;
  const int lane = static_cast<int>(threadIdx.x % kWarp), own_row = static_cast<int>(threadIdx.x / kWarp) * 16;
#pragma unroll
  for (int n = 0; n < columns / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = own_row + lane / 4 + i / 2 * 8, column = n * 8 + 2 * (lane % 4) + i % 2;
      shared[swapped ? column * stride + row : row * stride + column] = sums[n].numbers[i];
    }
  }
  __syncthreads();
  constexpr int kEach = kRows * columns / kTogether / kBlock;
  const std::int64_t first_line = swapped ? first_column : first_row, first_within = swapped ? first_row : first_column;
  const std::int64_t lines = swapped ? product.right.count : product.left.count;
  const std::int64_t count = swapped ? product.left.count : product.right.count;
  const std::int64_t line_stride = swapped ? product.column_stride : product.row_stride;
  const auto line_of = [&](int n) { return (static_cast<int>(threadIdx.x) + n * kBlock) / (length / kTogether); };
  const int within = static_cast<int>(threadIdx.x) % (length / kTogether) * kTogether;
  const bool whole = product.vectors && first_within + within + kTogether <= count;
  Bf16* const to = static_cast<Bf16*>(product.c) + first_line * line_stride + first_within + within;
  Together before[kEach] = {};
  if (whole && product.beta != 0) {
#pragma unroll
    for (int n = 0; n < kEach; ++n)
      if (first_line + line_of(n) < lines)
        before[n] = *reinterpret_cast<const Together*>(to + line_of(n) * line_stride);
  }
#pragma unroll
  for (int n = 0; n < kEach; ++n) {
    const std::int64_t line = first_line + line_of(n);
    if (line >= lines) continue;
    const float* of_tile = shared + line_of(n) * stride + within;
    if (whole) {
      *reinterpret_cast<Together*>(to + line_of(n) * line_stride) =
          put_together(product, line, first_within + within, of_tile, before[n]);
      continue;
    }
    Drops::Drawn drawn;
#pragma unroll 1
    for (int i = 0; i < kTogether && first_within + within + i < count; ++i) {
      const std::int64_t other = first_within + within + i;
      put(product, swapped ? other : line, swapped ? line : other, of_tile[i], drawn);
    }
  }
}

template <int columns, bool left_across, bool right_across>
__device__ void make_tile(const Product& product, const Tile& tile, float* partials) {
  using Left = Stage<kRows, left_across>;
  using Right = Stage<columns, right_across>;
  Bf16* const left_memory = shared_memory<Bf16>();
  Bf16* const right_memory = left_memory + Left::kNumbers;
  const std::int64_t first_row = tile.row * kRows, first_column = tile.column * columns;
  const std::int64_t first_k = tile.part * product.depth_each;
  const std::int64_t last_k =
      first_k + product.depth_each < product.depth ? first_k + product.depth_each : product.depth;
  const int lane = static_cast<int>(threadIdx.x % kWarp), own_row = static_cast<int>(threadIdx.x / kWarp) * 16;
  Left left(product.left, first_row);
  Right right(product.right, first_column);
  Sums sums[columns / 8];
  if (first_k < last_k) {
    left.load(product.left, first_row, first_k, last_k);
    right.load(product.right, first_column, first_k, last_k);
  }
  for (std::int64_t k = first_k; k < last_k; k += kStep) {
    __syncthreads();  // the step before has been read
    left.store(left_memory);
    right.store(right_memory);
    __syncthreads();
    if (k + kStep < last_k) {
      left.load(product.left, first_row, k + kStep, last_k);
      right.load(product.right, first_column, k + kStep, last_k);
    }
    const SharedTile<Left::kStride, left_across> of_left{left_memory};
    const SharedTile<Right::kStride, right_across> of_right{right_memory};
#pragma unroll
    for (int within = 0; within < kStep; within += 16) {
      const FragmentA a = of_left.a(own_row, within);
#pragma unroll
      for (int column = 0; column < columns; column += 16) {
        FragmentB b[2];
        of_right.b(column, within, b);
        multiply(a, b[0], sums[column / 8]);
        multiply(a, b[1], sums[column / 8 + 1]);
      }
    }
  }
  if (product.parts == 1) {
    __syncthreads();  // the last step has been read
    put_tile<columns>(product, first_row, first_column, sums, shared_memory<float>());
    return;
  }
#pragma unroll
  for (int n = 0; n < columns / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::int64_t row = first_row + own_row + lane / 4 + i / 2 * 8;
      const std::int64_t column = first_column + n * 8 + 2 * (lane % 4) + i % 2;
      if (row < product.left.count && column < product.right.count)
        partials[product.first_partial + (tile.part * product.left.count + row) * product.right.count + column] =
            sums[n].numbers[i];
    }
  }
}

template <int columns>
__global__ void __launch_bounds__(kBlock) tensor_products_kernel(Launched launched, float* partials) {
  const Product& product = launched.of(&Product::first_tile, blockIdx.x);
  const Tile tile(product, blockIdx.x);
  if (product.left.across) {
    product.right.across ? make_tile<columns, true, true>(product, tile, partials)
                         : make_tile<columns, true, false>(product, tile, partials);
  } else {
    product.right.across ? make_tile<columns, false, true>(product, tile, partials)
                         : make_tile<columns, false, false>(product, tile, partials);
  }
}

/// Adds up the parts, one after another.
__global__ void add_parts_kernel(Launched launched, const float* partials) {
  const Product& product = launched.of(&Product::first_sum, blockIdx.x);
  const std::int64_t first_row = (blockIdx.x - product.first_sum) * kRows;
  const std::int64_t columns = product.right.count;
  Drops::Drawn drawn;
  for (std::int64_t i = threadIdx.x; i < kRows * columns; i += blockDim.x) {
    const std::int64_t row = first_row + i / columns, column = i % columns;
    if (row >= product.left.count) continue;
    float sum = 0;
    for (std::int64_t part = 0; part < product.parts; ++part)
      sum += partials[product.first_partial + (part * product.left.count + row) * columns + column];
    put(product, row, column, sum, drawn);
  }
}

/// Sums of more than so many numbers are made in parts, where the product is narrow: there are few tiles then.
constexpr std::int64_t kLongSum = 1024, kMostParts = 8, kNarrow = 256;

Product product_of(const MatmulCall& call, const DropTables& drops) {
  Product product{};
  product.left = side(call.a, call.a_transpose == Transpose::yes, drops.of(call, Dropped::a, call.a.rows));
  product.right = side(call.b, call.b_transpose == Transpose::no, drops.of(call, Dropped::b, call.b.rows));
  product.drops = drops.of(call, Dropped::sum, call.c.rows);
  product.depth = call.a_transpose == Transpose::yes ? call.a.rows : call.a.columns;
  BRAID_CHECK(product.left.count == call.c.rows && product.right.count == call.c.columns &&
                  (call.b_transpose == Transpose::yes ? call.b.columns : call.b.rows) == product.depth,
              "a product of depth {} to [{}, {}]", product.depth, call.c.rows, call.c.columns);
  product.c = call.c.data, product.row_stride = call.c.stride, product.column_stride = 1;
  product.alpha = call.alpha, product.beta = call.beta;
  product.bf16 = call.c.type == costmodel::DataType::bf16;
  product.vectors = product.bf16 && lies_on_16_bytes(call.c);
  if (product.left.count < product.right.count) {
    std::swap(product.left, product.right);
    std::swap(product.row_stride, product.column_stride);
    product.swapped = true;
  }
  const std::int64_t parts =
      product.right.count > kNarrow ? 1 : std::clamp(product.depth / kLongSum, std::int64_t{1}, kMostParts);
  product.depth_each = std::max<std::int64_t>((product.depth + parts - 1) / parts, 1);
  product.depth_each = (product.depth_each + kStep - 1) / kStep * kStep;
  product.parts = std::max<std::int64_t>((product.depth + product.depth_each - 1) / product.depth_each, 1);
  return product;
}

/// Products whose tiles are `columns` wide, in the order in which they are launched.
template <int columns>
class Launch {
 public:
  void add(Product product) {
    const std::int64_t row_tiles = (product.left.count + kRows - 1) / kRows;
    product.column_tiles = (product.right.count + columns - 1) / columns;
    product.first_tile = tiles_;
    product.first_sum = sums_;
    tiles_ += row_tiles * product.column_tiles * product.parts;
    if (product.parts > 1) sums_ += row_tiles;
    products_.push_back(product);
  }
  void run(float* partials) const {
    if (products_.empty()) return;
    constexpr int kStaged = std::max(Stage<kRows, true>::kNumbers, Stage<kRows, false>::kNumbers) +
                            std::max(Stage<columns, true>::kNumbers, Stage<columns, false>::kNumbers);
    constexpr std::size_t kMost = std::max(kStaged * sizeof(Bf16), kSumNumbers<columns> * sizeof(float));
    const Numbers<Product> staged(products_);
    const Launched launched{staged.data(), static_cast<std::int32_t>(products_.size())};
    launch(tensor_products_kernel<columns>, dim3(static_cast<unsigned>(tiles_)), kBlock, kMost, launched, partials);
    if (sums_ > 0) launch(add_parts_kernel, dim3(static_cast<unsigned>(sums_)), kThreads, 0, launched, partials);
  }

 private:
  std::vector<Product> products_;
  std::int64_t tiles_ = 0, sums_ = 0;
};

}  // namespace

bool by_tensor_cores(const MatmulCall& call) {
  using costmodel::DataType;
  return call.a.type == DataType::bf16 || call.b.type == DataType::bf16 || call.c.type == DataType::bf16;
}

void tensor_matmul_group(std::span<const MatmulCall> calls) {
  constexpr int kFew = 16, kMany = 64;
  Launch<kFew> narrow;
  Launch<kMany> wide;
  std::int64_t partials = 0;
  const DropTables drops(calls);
  for (const MatmulCall& call : calls) {
    if (call.c.rows == 0 || call.c.columns == 0) continue;
    Product product = product_of(call, drops);
    product.first_partial = partials;
    if (product.parts > 1) partials += product.parts * product.left.count * product.right.count;
    product.right.count <= kFew ? narrow.add(product) : wide.add(product);
  }
  const Numbers<float> sums(partials);
  narrow.run(sums.data());
  wide.run(sums.data());
}

}  // namespace braid::kernels::cuda
