#include "kernels/matmul.h"

#include <vector>

#include "kernels/cpu/packed_panels.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/tile_product.h"

namespace braid::kernels::cpu {
namespace {

constexpr std::int64_t divided_up(std::int64_t number, std::int64_t by) {
  return (number + by - 1) / by;
}

/// Columns of a panel.
constexpr std::int64_t kPanel = 64;

/// One call. op(b) is cut into panels of kPanel columns, op(a) into blocks of rows: a panel and a block make one job.
struct Product {
  float alpha = 1.0F;
  ConstMatrix a;
  bool a_transposed = false;
  ConstMatrix b;
  bool b_transposed = false;
  bool accumulate = false;
  Matrix c;

  static constexpr std::int64_t kTileRows = 6;  // of a tile, or half of them
  /// Numbers of a panel that one pass over a tile reads, so that they stay in the cache.
  static constexpr std::int64_t kPanelPiece = 16384;

  std::int64_t depth() const { return a_transposed ? a.rows : a.columns; }
  std::int64_t panels() const { return divided_up(c.columns, kPanel); }
  std::int64_t panel_columns(std::int64_t panel) const { return std::min(kPanel, c.columns - panel * kPanel); }
  /// The rows of a transposed a are read a piece at a time, and pieces of a few cache lines stall on memory. Narrow
  /// lanes leave time to read longer blocks, which read panels less often.
  std::int64_t most_block_rows() const { return a_transposed ? 192 : kLanes == 16 ? 48 : 96; }
  /// Blocks are of even height, and as many as give every thread as many jobs.
  std::int64_t block_rows() const {
    const std::int64_t threads = thread_count();
    std::int64_t blocks = divided_up(c.rows, most_block_rows());
    if (panels() % threads != 0) blocks = divided_up(blocks, threads) * threads;
    return divided_up(divided_up(c.rows, blocks), kTileRows) * kTileRows;
  }
  /// The gradient of a weight takes activations as b: they are long, and used by few rows, so packing would not pay.
  bool packs_b() const { return !a_transposed || b_transposed || c.columns % kLanes != 0; }
};

/// One panel of op(b), of any layout, as [depth, width] with the columns rounded up to lanes.
struct Panel {
  const float* data = nullptr;
  std::int64_t stride = 0;
};

void pack_rows(ConstMatrix b, float scale, std::int64_t width, float* to) {
  for (std::int64_t k = 0; k < b.rows; ++k) {
    for_lanes(b.columns, [&](std::int64_t j, std::int64_t count) {
      store(to + k * width + j, load(b.row(k) + j, count) * scale);
    });
  }
}

void pack_transposed(ConstMatrix b, float scale, std::int64_t width, float* to) {
  for_lanes(b.rows, [&](std::int64_t j, std::int64_t across) {
    for_lanes(b.columns, [&](std::int64_t k, std::int64_t down) {
      Lanes square[kLanes] = {};
      for (std::int64_t i = 0; i < across; ++i) square[i] = load(b.row(j + i) + k, down) * scale;
      transpose(square);
      for (std::int64_t i = 0; i < down; ++i) store(to + (k + i) * width + j, square[i]);
    });
  });
}

/// One panel of scale · op(b), which [depth, columns] is; `to` is where the first panel begins.
void pack_panel(float scale, ConstMatrix b, bool transposed, std::int64_t panel, float* to) {
  const std::int64_t depth = transposed ? b.columns : b.rows, columns = transposed ? b.rows : b.columns;
  const std::int64_t first = panel * kPanel, last = std::min(first + kPanel, columns);
  float* packed = to + first * depth;
  if (transposed) {
    pack_transposed(b.row_range(first, last), scale, round_up_to_lanes(last - first), packed);
  } else {
    pack_rows(b.column_range(first, last), scale, round_up_to_lanes(last - first), packed);
  }
}

/// scale · op(b), panel after panel, each [depth, kPanel] at most.
void pack_scaled(float scale, ConstMatrix b, bool transposed, float* to) {
  const std::int64_t depth = transposed ? b.columns : b.rows, columns = transposed ? b.rows : b.columns;
  for_rows(divided_up(columns, kPanel), depth * kPanel,
           [&](std::int64_t panel) { pack_panel(scale, b, transposed, panel, to); });
}

void copy_tile(ConstMatrix from, Matrix to) {
  for (std::int64_t i = 0; i < from.rows; ++i) std::copy_n(from.row(i), from.columns, to.row(i));
}

/// c (+)= op(a)'s rows [first_row, first_row + rows) · panel, into a c whose columns are the panel's width.
void multiply(const Product& product, std::int64_t first_row, std::int64_t rows, std::int64_t width, Panel panel,
              Matrix c) {
  thread_local Scratch scratch;
  const std::int64_t step = Product::kPanelPiece / (product.a_transposed ? kPanel : width);
  for (std::int64_t k = 0; k < product.depth(); k += step) {
    const std::int64_t depth = std::min(step, product.depth() - k);
    TileLeft left;
    if (product.a_transposed) {
      float* packed = scratch.at_least(step * round_up_to_lanes(rows));
      const ConstMatrix piece = product.a.row_range(k, k + depth).column_range(first_row, first_row + rows);
      pack_rows(piece, product.alpha, round_up_to_lanes(rows), packed);
      left = {packed, 1, round_up_to_lanes(rows)};
    } else {
      left = {product.a.row(first_row) + k, product.a.stride, 1};
    }
    tile_product(rows, width, depth, left, panel.data + k * panel.stride, panel.stride, product.accumulate || k > 0,
                 c.data, c.stride);
  }
}

/// One job, by way of a tile where c's columns are not a multiple of kLanes.
void multiply_block(const Product& product, std::int64_t first_row, std::int64_t rows, std::int64_t panel_index,
                    Panel panel) {
  thread_local Scratch scratch;
  const std::int64_t first = panel_index * kPanel;
  const std::int64_t columns = product.panel_columns(panel_index);
  const std::int64_t width = round_up_to_lanes(columns);
  const Matrix c = product.c.row_range(first_row, first_row + rows).column_range(first, first + columns);
  if (width == columns) return multiply(product, first_row, rows, width, panel, c);
  const Matrix tile(scratch.at_least(rows * width), rows, columns, width);
  if (product.accumulate) copy_tile(c, tile);
  multiply(product, first_row, rows, width, panel, tile);
  copy_tile(tile, c);
}

std::int64_t jobs_of(const Product& product) {
  return divided_up(product.c.rows, product.block_rows()) * product.panels();
}

/// What they take together. Adding up a register of products counts as a number.
std::int64_t copies_of(const Product& product) {
  return kCopies * product.c.rows * round_up_to_lanes(product.c.columns) * std::max(kLanes, product.depth()) / kLanes;
}

/// From op(b)'s panels where it was packed.
void multiply_job(const Product& product, const float* packed, std::int64_t job) {
  const std::int64_t block_rows = product.block_rows(), panel = job % product.panels();
  const std::int64_t first_row = job / product.panels() * block_rows;
  const std::int64_t first = panel * kPanel;
  multiply_block(product, first_row, std::min(block_rows, product.c.rows - first_row), panel,
                 packed ? Panel{packed + first * product.depth(), round_up_to_lanes(product.panel_columns(panel))}
                        : Panel{product.b.data + first, product.b.stride});
}

/// All of c.
void multiply_jobs(const Product& product, const float* packed) {
  const std::int64_t jobs = jobs_of(product);
  for_rows(jobs, copies_of(product) / std::max<std::int64_t>(jobs, 1),
           [&](std::int64_t job) { multiply_job(product, packed, job); });
}

/// Throws where the matrices do not fit.
Product product_of(const MatmulCall& call) {
  const Product product{
      call.alpha,        call.a, call.a_transpose == Transpose::yes, call.b, call.b_transpose == Transpose::yes,
      call.beta != 0.0F, call.c};
  const ConstMatrix &a = call.a, &b = call.b;
  const Matrix& c = call.c;
  BRAID_CHECK((product.a_transposed ? a.columns : a.rows) == c.rows &&
                  (product.b_transposed ? b.rows : b.columns) == c.columns &&
                  (product.b_transposed ? b.columns : b.rows) == product.depth(),
              "[{}, {}]{} [{}, {}]{} to [{}, {}]", a.rows, a.columns, product.a_transposed ? "ᵀ" : "", b.rows,
              b.columns, product.b_transposed ? "ᵀ" : "", c.rows, c.columns);
  BRAID_CHECK(call.beta == 0.0F || call.beta == 1.0F, "beta {}", call.beta);
  BRAID_CHECK(call.dropped == Dropped::nothing, "products that drop numbers on {}", "a processor");
  return product;
}

/// A product without terms.
void clear(const Product& product) {
  for (std::int64_t i = 0; i < product.c.rows && !product.accumulate; ++i)
    std::fill_n(product.c.row(i), product.c.columns, 0.0F);
}

/// One of a group: its panels and jobs stand behind those of the products before it.
struct Grouped {
  Product product;
  float* packed = nullptr;
  std::int64_t last_panel = 0, last_job = 0;
};

/// Calls body(product, number within it) for the panels or jobs of all products, `copies` each in the mean; threads
/// take them one by one, as they are unlike.
template <typename Body>
void for_grouped(const std::vector<Grouped>& all, std::int64_t Grouped::*last, std::int64_t copies, const Body& body) {
  const std::int64_t count = all.back().*last;
  const auto one = [&](std::int64_t i) {
    const auto found =
        std::partition_point(all.begin(), all.end(), [&](const Grouped& each) { return each.*last <= i; });
    body(*found, found == all.begin() ? i : i - (*(found - 1)).*last);
  };
  if (count * copies < kNumbersWorthThreads) {
    for (std::int64_t i = 0; i < count; ++i) one(i);
  } else {
    parallel_jobs(count, one);
  }
}

}  // namespace

void matmul(float alpha, ConstMatrix a, Transpose a_transpose, ConstMatrix b, Transpose b_transpose, float beta,
            Matrix c) {
  const Product product = product_of({alpha, a, a_transpose, b, b_transpose, beta, c});
  if (c.rows == 0) return;
  if (product.depth() == 0) return clear(product);
  thread_local Scratch scratch;
  const float* packed = nullptr;
  if (product.packs_b()) {
    float* memory = scratch.at_least(packed_numbers(product.depth(), c.columns));
    pack_scaled(product.a_transposed ? 1.0F : alpha, b, product.b_transposed, memory);
    packed = memory;
  }
  multiply_jobs(product, packed);
}

void matmul_group(std::span<const MatmulCall> calls) {
  std::vector<Grouped> all;
  std::int64_t numbers = 0, panels = 0, jobs = 0, packed_copies = 0, copies = 0;
  for (const MatmulCall& call : calls) {
    const Product product = product_of(call);
    if (call.c.rows == 0 || call.c.columns == 0) continue;
    if (product.depth() == 0) {
      clear(product);
      continue;
    }
    const bool packs = product.packs_b();
    panels += packs ? product.panels() : 0;
    jobs += jobs_of(product);
    copies += copies_of(product);
    packed_copies += packs ? packed_numbers(product.depth(), call.c.columns) : 0;
    all.push_back({product, nullptr, panels, jobs});
  }
  if (all.empty()) return;
  thread_local Scratch scratch;
  // Panels begin on cache lines.
  float* memory = scratch.at_least(packed_copies + 16 * std::ssize(all));
  for (Grouped& each : all) {
    if (!each.product.packs_b()) continue;
    each.packed = memory + numbers;
    numbers += (packed_numbers(each.product.depth(), each.product.c.columns) + 15) / 16 * 16;
  }
  if (panels > 0)
    for_grouped(all, &Grouped::last_panel, packed_copies / panels, [](const Grouped& each, std::int64_t panel) {
      const Product& product = each.product;
      pack_panel(product.a_transposed ? 1.0F : product.alpha, product.b, product.b_transposed, panel, each.packed);
    });
  for_grouped(all, &Grouped::last_job, copies / jobs,
              [](const Grouped& each, std::int64_t job) { multiply_job(each.product, each.packed, job); });
}

std::int64_t packed_numbers(std::int64_t depth, std::int64_t columns) {
  return depth * round_up_to_lanes(columns);
}

void pack_panels(ConstMatrix b, Transpose b_transpose, float* to) {
  pack_scaled(1.0F, b, b_transpose == Transpose::yes, to);
}

void multiply_panels(ConstMatrix a, const float* panels, float beta, Matrix c) {
  if (c.rows == 0) return;
  multiply_jobs(Product{1.0F, a, false, {}, false, beta != 0.0F, c}, panels);
}

}  // namespace braid::kernels::cpu
