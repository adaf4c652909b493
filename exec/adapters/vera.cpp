#include "exec/adapters/targets.h"

namespace braid::exec {
namespace {

using kernels::ConstMatrix;
using kernels::Matrix;
using kernels::Transpose;
using Part = Adapter::Part;

/// y += b ⊙ B (d ⊙ A dropout(x)): the vectors b and d of every module are trained, A and B are frozen.
class Vera final : public AdapterKind {
 public:
  void forward(const AdapterRows& rows, ConstMatrix x, Matrix y) const override {
    const std::int64_t columns = costmodel::low_rank_width(rows.adapter.shape(), rows.group);
    rows.kept.low_rank = rows.context.pool.take(x.rows * columns);
    const Matrix low_rank = rows.kept.low_rank.matrix(x.rows, columns);
    for_inputs(rows, x, [&](const Target& target, ConstMatrix input) {
      const Matrix between = low_rank.column_range(target.first, target.last);
      rows.kernels().matmul(1, input, Transpose::no, a(rows), Transpose::yes, 0, between);
      const Buffer scaled = scaled_by_d(rows, target, between);
      for (const TargetOutputs& outputs : target.outputs) {
        const Buffer up = through_b(rows, outputs, scaled.matrix(between.rows, between.columns));
        rows.kernels().scale_columns(of_outputs(vector(rows, Part::parameter, Role::lambda_b, target), outputs),
                                     up.matrix(x.rows, outputs.rows.count()), true,
                                     y.column_range(outputs.column, outputs.last_column()));
      }
    });
  }

  void backward(const AdapterRows& rows, ConstMatrix x, ConstMatrix dy, Matrix dx) const override {
    const std::int64_t columns = costmodel::low_rank_width(rows.adapter.shape(), rows.group);
    const Matrix low_rank = rows.kept.low_rank.matrix(x.rows, columns);
    for (const Target& target : targets_of(rows)) {
      const Matrix between = low_rank.column_range(target.first, target.last);
      const Buffer gradient = through_outputs(rows, target, between, dy);
      const Matrix d_scaled = gradient.matrix(between.rows, between.columns);
      rows.kernels().sum_columns(1, d_scaled, between, vector(rows, Part::gradient, Role::lambda_d, target));
      if (dx.rows == 0) continue;
      rows.kernels().scale_columns(vector(rows, Part::parameter, Role::lambda_d, target), d_scaled, false, d_scaled);
      if (rows.dropout() == 0) {
        rows.kernels().matmul(1, d_scaled, Transpose::no, a(rows), Transpose::no, 1, dx);
        continue;
      }
      const Buffer input = rows.context.pool.take(x.rows * x.columns);
      rows.kernels().matmul(1, d_scaled, Transpose::no, a(rows), Transpose::no, 0, input.matrix(x.rows, x.columns));
      drop_into(rows, target.module, input.matrix(x.rows, x.columns), true, dx);
    }
  }

 private:
  static kernels::Vector vector(const AdapterRows& rows, Part part, Role role, const Target& target) {
    return rows.adapter.row(part, rows.layer, role, target.module);
  }
  /// The shard's inputs.
  static ConstMatrix a(const AdapterRows& rows) {
    const Share in = rows.context.shard.inputs(costmodel::modules_of(rows.group).front());
    return rows.adapter.random_a().column_range(in.first, in.last);
  }
  static ConstMatrix b(const AdapterRows& rows, const TargetOutputs& outputs) {
    return rows.adapter.random_b().row_range(outputs.rows.first, outputs.rows.last);
  }
  static Buffer scaled_by_d(const AdapterRows& rows, const Target& target, ConstMatrix between) {
    Buffer scaled = rows.context.pool.take(between.rows * between.columns);
    rows.kernels().scale_columns(vector(rows, Part::parameter, Role::lambda_d, target), between, false,
                                 scaled.matrix(between.rows, between.columns));
    return scaled;
  }
  static Buffer through_b(const AdapterRows& rows, const TargetOutputs& outputs, ConstMatrix scaled) {
    Buffer up = rows.context.pool.take(scaled.rows * outputs.rows.count());
    rows.kernels().matmul(1, scaled, Transpose::no, b(rows, outputs), Transpose::yes, 0,
                          up.matrix(scaled.rows, outputs.rows.count()));
    return up;
  }
  /// The gradient of d ⊙ A x; adds that of b.
  static Buffer through_outputs(const AdapterRows& rows, const Target& target, ConstMatrix between, ConstMatrix dy) {
    const Buffer scaled = scaled_by_d(rows, target, between);
    Buffer gradient = rows.context.pool.take(between.rows * between.columns);
    float keeps = 0;
    for (const TargetOutputs& outputs : target.outputs) {
      const ConstMatrix d_out = dy.column_range(outputs.column, outputs.last_column());
      const Buffer buffer = through_b(rows, outputs, scaled.matrix(between.rows, between.columns));
      const Matrix up = buffer.matrix(between.rows, outputs.rows.count());
      rows.kernels().sum_columns(1, d_out, up,
                                 of_outputs(vector(rows, Part::gradient, Role::lambda_b, target), outputs));
      rows.kernels().scale_columns(of_outputs(vector(rows, Part::parameter, Role::lambda_b, target), outputs), d_out,
                                   false, up);
      rows.kernels().matmul(1, up, Transpose::no, b(rows, outputs), Transpose::no, keeps,
                            gradient.matrix(between.rows, between.columns));
      keeps = 1;
    }
    return gradient;
  }
};

}  // namespace

const AdapterKind& vera_kind() {
  static const Vera kind;
  return kind;
}

}  // namespace braid::exec
