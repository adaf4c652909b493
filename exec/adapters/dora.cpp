#include <algorithm>
#include <cmath>

#include "exec/adapters/lora.h"

namespace braid::exec {
namespace {

using costmodel::Module;
using kernels::ConstMatrix;
using kernels::Matrix;
using kernels::Transpose;
using Part = Adapter::Part;

/// y = c ⊙ (W x + scaling · B A x) + bias, c = m / |W + scaling · B A| of each output; the norm counts as a number in
/// the gradient (Liu et al. 2024, section 4.3).
///
/// With dropout x' = dropout(x), each module's own, stands for x in what is added: as PEFT has it,
/// y = W x + bias + (c − 1) ⊙ W x' + c ⊙ scaling · B A x'.
///
/// What c multiplies, W x' + scaling · B A x', is kept.
class Dora final : public AdapterKind {
 public:
  std::int64_t shared_numbers(const AdapterRows& rows) const override {
    std::int64_t count = 0;
    if (!shares_norms(rows)) return count;
    for (const Target& target : targets_of(rows)) count += stale(rows, target) ? module_rows(rows, target) : 0;
    return count;
  }
  void give_shared(const AdapterRows& rows, kernels::Vector mine) const override {
    for_stale(rows, mine, [&](const Target& target, kernels::Vector squares) {
      squares_of(rows, target, rows.context.shard.place() == 0, squares);
    });
  }
  void take_shared(const AdapterRows& rows, kernels::ConstVector sums) const override {
    for_stale(rows, sums,
              [&](const Target& target, kernels::ConstVector squares) { set_norms(rows, target, squares); });
  }

  void forward(const AdapterRows& rows, ConstMatrix x, Matrix y) const override {
    const std::int64_t columns = costmodel::low_rank_width(rows.adapter.shape(), rows.group), out = width(rows);
    rows.kept.low_rank = rows.context.pool.take(x.rows * columns);
    rows.kept.output = rows.context.pool.take(x.rows * out);
    const Matrix low_rank = rows.kept.low_rank.matrix(x.rows, columns), sums = rows.kept.output.matrix(x.rows, out);
    LowRank(rows).down(x, low_rank);
    keep_products(rows, x, y, sums);
    // The frozen part goes from y, all of it or the masked inputs', and comes back scaled.
    add_kept(rows, -1, sums, y);
    up(rows, low_rank, sums);
    scale(rows, sums, y);
  }

  void backward_output(const AdapterRows& rows, ConstMatrix /*x*/, Matrix dy) const override {
    const Matrix sums = rows.kept.output.matrix(dy.rows, width(rows));
    for_outputs(rows, [&](const Target& target, const TargetOutputs& outputs, std::int64_t column) {
      const Matrix part = dy.column_range(outputs.column, outputs.last_column());
      const Matrix kept = sums.column_range(column, column + part.columns);
      const Buffer gradient = rows.context.pool.take_f32(part.columns);
      rows.kernels().fill(0, gradient.row());
      rows.kernels().sum_columns(1, part, kept, gradient.vector());
      const kernels::Vector to =
          of_outputs(rows.adapter.row(Part::gradient, rows.layer, Role::magnitude, target.module), outputs);
      rows.kernels().scale_columns(inverse(rows, target, outputs), gradient.row(), true, as_row(to));
      // From here on what is kept is the gradient of what it was, c ⊙ dy.
      rows.kernels().scale_columns(factors(rows, target, outputs).vector(), part, false, kept);
      if (rows.dropout() == 0) rows.kernels().copy(kept, part);
    });
  }

  void backward(const AdapterRows& rows, ConstMatrix x, ConstMatrix dy, Matrix dx) const override {
    if (rows.dropout() == 0) return LowRank(rows).backward(x, dy, dx);
    const std::int64_t out = rows.product().out();
    const Matrix sums = rows.kept.output.matrix(x.rows, width(rows));
    // The gradient of W x' + scaling · B A x', where y's columns are.
    Buffer spread = rows.context.pool.take(x.rows * out);
    const Matrix d_sums = spread.matrix(x.rows, out);
    rows.kernels().fill(0, d_sums);
    for_outputs(rows, [&](const Target&, const TargetOutputs& outputs, std::int64_t column) {
      rows.kernels().copy(sums.column_range(column, column + outputs.rows.count()),
                          d_sums.column_range(outputs.column, outputs.last_column()));
    });
    LowRank(rows).backward(x, d_sums, dx);
    if (dx.rows == 0) return;
    // (c − 1) ⊙ dy goes back through W to each module's masked input.
    const Buffer input = rows.context.pool.take(x.rows * x.columns);
    for (const Target& target : targets_of(rows)) {
      rows.kernels().fill(0, d_sums);
      for_outputs(rows, [&](const Target& other, const TargetOutputs& outputs, std::int64_t column) {
        if (other.module != target.module) return;
        const Matrix to = d_sums.column_range(outputs.column, outputs.last_column());
        const ConstMatrix scaled = sums.column_range(column, column + outputs.rows.count()),
                          plain = dy.column_range(outputs.column, outputs.last_column());
        rows.kernels().copy(scaled, to);
        rows.kernels().scale(-1, plain, true, to);
      });
      rows.product().backward(d_sums, input.matrix(x.rows, x.columns));
      drop_into(rows, target.module, input.matrix(x.rows, x.columns), true, dx);
    }
  }

 private:
  static std::int64_t width(const AdapterRows& rows) {
    std::int64_t columns = 0;
    for (const Target& target : targets_of(rows))
      for (const TargetOutputs& outputs : target.outputs) columns += outputs.rows.count();
    return columns;
  }
  static Matrix as_row(kernels::Vector numbers) { return {numbers.data(), 1, std::ssize(numbers)}; }
  /// Calls body(target, outputs, first column in what is kept).
  template <typename Body>
  static void for_outputs(const AdapterRows& rows, const Body& body) {
    std::int64_t column = 0;
    for (const Target& target : targets_of(rows)) {
      for (const TargetOutputs& outputs : target.outputs) {
        body(target, outputs, column);
        column += outputs.rows.count();
      }
    }
  }

  /// W x' of the targets, without the bias: of x itself what the product has written.
  static void keep_products(const AdapterRows& rows, ConstMatrix x, ConstMatrix y, Matrix sums) {
    const kernels::ConstVector bias = rows.product().bias();
    const auto keep = [&](ConstMatrix from, const TargetOutputs& outputs, std::int64_t column) {
      const Matrix to = sums.column_range(column, column + outputs.rows.count());
      rows.kernels().copy(from.column_range(outputs.column, outputs.last_column()), to);
      if (!bias.empty()) rows.kernels().add_row(-1, bias.range(outputs.column, outputs.last_column()), to);
    };
    if (rows.dropout() == 0) {
      for_outputs(rows,
                  [&](const Target&, const TargetOutputs& outputs, std::int64_t column) { keep(y, outputs, column); });
      return;
    }
    const Buffer products = rows.context.pool.take(x.rows * rows.product().out());
    const Matrix all = products.matrix(x.rows, rows.product().out());
    for_inputs(rows, x, [&](const Target& target, ConstMatrix input) {
      rows.product().forward(input, all);
      for_outputs(rows, [&](const Target& other, const TargetOutputs& outputs, std::int64_t column) {
        if (other.module == target.module) keep(all, outputs, column);
      });
    });
  }

  /// y += factor · what is kept.
  static void add_kept(const AdapterRows& rows, float factor, ConstMatrix sums, Matrix y) {
    for_outputs(rows, [&](const Target&, const TargetOutputs& outputs, std::int64_t column) {
      rows.kernels().scale(factor, sums.column_range(column, column + outputs.rows.count()), true,
                           y.column_range(outputs.column, outputs.last_column()));
    });
  }

  /// What is kept += scaling · B A x'.
  static void up(const AdapterRows& rows, ConstMatrix low_rank, Matrix sums) {
    for_outputs(rows, [&](const Target& target, const TargetOutputs& outputs, std::int64_t column) {
      const Matrix b =
          rows.adapter.b(Part::parameter, rows.layer, target.module).row_range(outputs.rows.first, outputs.rows.last);
      rows.kernels().matmul(rows.adapter.scaling(target.module), low_rank.column_range(target.first, target.last),
                            Transpose::no, b, Transpose::yes, 1, sums.column_range(column, column + b.rows));
    });
  }

  /// y += c ⊙ what is kept.
  static void scale(const AdapterRows& rows, ConstMatrix sums, Matrix y) {
    for_outputs(rows, [&](const Target& target, const TargetOutputs& outputs, std::int64_t column) {
      rows.kernels().scale_columns(factors(rows, target, outputs).vector(),
                                   sums.column_range(column, column + outputs.rows.count()), true,
                                   y.column_range(outputs.column, outputs.last_column()));
    });
  }

  /// 1 / |W + scaling · B A| of those outputs.
  static kernels::Vector inverse(const AdapterRows& rows, const Target& target, const TargetOutputs& outputs) {
    return of_outputs(fresh_norms(rows, target), outputs);
  }
  static Buffer factors(const AdapterRows& rows, const Target& target, const TargetOutputs& outputs) {
    Buffer result = rows.context.pool.take_f32(outputs.rows.count());
    const kernels::Vector magnitude =
        of_outputs(rows.adapter.row(Part::parameter, rows.layer, Role::magnitude, target.module), outputs);
    rows.kernels().scale_columns(inverse(rows, target, outputs), as_row(magnitude), false, result.row());
    return result;
  }

  /// By output of the whole module; those that are the shard's are there.
  static kernels::Vector fresh_norms(const AdapterRows& rows, const Target& target) {
    Adapter::Norms& norms = rows.adapter.norms(rows.layer, target.module);
    if (norms.version == rows.adapter.version()) return norms.inverse.view();
    BRAID_CHECK(!shares_norms(rows), "norms of rows that lie on several shards are not summed up");
    const Buffer squares = rows.context.pool.take_f32(module_rows(rows, target));
    squares_of(rows, target, true, squares.vector());
    set_norms(rows, target, squares.vector());
    return norms.inverse.view();
  }

  static bool shares_norms(const AdapterRows& rows) {
    return splits_rows(rows.group) && rows.context.shard.count() > 1;
  }
  static std::int64_t module_rows(const AdapterRows& rows, const Target& target) {
    return costmodel::module_shape(rows.context.shard.whole(), target.module).out;
  }
  /// Calls body(target, its numbers) for those whose norms are of earlier parameters.
  template <typename Numbers, typename Body>
  static void for_stale(const AdapterRows& rows, Numbers numbers, const Body& body) {
    std::int64_t first = 0;
    for (const Target& target : targets_of(rows)) {
      if (!stale(rows, target)) continue;
      const std::int64_t last = first + module_rows(rows, target);
      body(target, numbers.range(first, last));
      first = last;
    }
  }
  static bool stale(const AdapterRows& rows, const Target& target) {
    return rows.adapter.norms(rows.layer, target.module).version != rows.adapter.version();
  }
  static void set_norms(const AdapterRows& rows, const Target& target, kernels::ConstVector squares) {
    Adapter::Norms& norms = rows.adapter.norms(rows.layer, target.module);
    rows.kernels().inverse_roots(squares, norms.inverse.view());
    norms.version = rows.adapter.version();
  }

  /// |w + s B a|² of each row, where A W comes from the frozen product: of the columns that are the shard's, and |w|²
  /// of the whole row where it is asked for.
  static void squares_of(const AdapterRows& rows, const Target& target, bool frozen, kernels::Vector squares) {
    const costmodel::ModuleShape& shape = costmodel::module_shape(rows.context.shard.whole(), target.module);
    const Share columns = shares_norms(rows) ? rows.context.shard.inputs(target.module) : Share{0, shape.in};
    const Matrix whole = rows.adapter.a(Part::parameter, rows.layer, target.module);
    const std::int64_t rank = whole.rows;
    const Matrix a = whole.column_range(columns.first, columns.last);
    const Buffer crossed = rows.context.pool.take_f32(rank * rows.product().out());
    const Buffer inner = rows.context.pool.take_f32(rank * rank);
    const Matrix with_weight = crossed.matrix(rank, rows.product().out());
    rows.product().forward(a, with_weight);
    rows.kernels().matmul(1, a, Transpose::no, a, Transpose::yes, 0, inner.matrix(rank, rank));
    if (frozen) {
      rows.context.pool.device().upload(std::as_bytes(std::span(rows.weights.squares(target.module))), squares.data());
    } else {
      rows.kernels().fill(0, as_row(squares));
    }
    const kernels::ConstVector bias = rows.product().bias();
    for (const TargetOutputs& outputs : target.outputs) {
      const Matrix b =
          rows.adapter.b(Part::parameter, rows.layer, target.module).row_range(outputs.rows.first, outputs.rows.last);
      rows.kernels().low_rank_squares(rows.adapter.scaling(target.module), b,
                                      with_weight.column_range(outputs.column, outputs.last_column()),
                                      bias.empty() ? bias : bias.range(outputs.column, outputs.last_column()),
                                      inner.matrix(rank, rank), squares.range(outputs.rows.first, outputs.rows.last));
    }
  }
};

}  // namespace

const AdapterKind& dora_kind() {
  static const Dora kind;
  return kind;
}

}  // namespace braid::exec
