#include "exec/adapters/adapter_kind.h"

namespace braid::exec {
namespace {

using kernels::ConstMatrix;
using kernels::Matrix;
using kernels::Transpose;
using Part = Adapter::Part;

/// y += U silu(D y + c) + e, on the sum of the shards' parts. Every shard does the whole of it, as y is small beside
/// the products, and the first adds the gradients.
class Bottleneck final : public AdapterKind {
 public:
  void forward_sum(const AdapterRows& rows, Matrix y) const override {
    const std::int64_t between = rows.adapter.shape().rank;
    rows.kept.output = rows.context.pool.take(y.rows * y.columns);
    rows.kept.low_rank = rows.context.pool.take(y.rows * between);
    const Matrix before = rows.kept.output.matrix(y.rows, y.columns), z = rows.kept.low_rank.matrix(y.rows, between);
    rows.kernels().copy(y, before);
    rows.kernels().matmul(1, before, Transpose::no, matrix(rows, Part::parameter, Role::down), Transpose::yes, 0, z);
    rows.kernels().add_row(1, vector(rows, Part::parameter, Role::down_bias), z);
    const Buffer activated = activate(rows, z);
    rows.kernels().matmul(1, activated.matrix(y.rows, between), Transpose::no, matrix(rows, Part::parameter, Role::up),
                          Transpose::yes, 1, y);
    rows.kernels().add_row(1, vector(rows, Part::parameter, Role::up_bias), y);
  }

  void backward_sum(const AdapterRows& rows, Matrix dy) const override {
    const std::int64_t between = rows.adapter.shape().rank;
    const Matrix before = rows.kept.output.matrix(dy.rows, dy.columns), z = rows.kept.low_rank.matrix(dy.rows, between);
    const bool adds = rows.context.shard.place() == 0;
    const Buffer activated = activate(rows, z), gradient = rows.context.pool.take(dy.rows * between);
    const Matrix dz = gradient.matrix(dy.rows, between);
    rows.kernels().matmul(1, dy, Transpose::no, matrix(rows, Part::parameter, Role::up), Transpose::no, 0, dz);
    if (adds) {
      rows.kernels().matmul(1, dy, Transpose::yes, activated.matrix(dy.rows, between), Transpose::no, 1,
                            matrix(rows, Part::gradient, Role::up));
      rows.kernels().sum_columns(1, dy, {}, vector(rows, Part::gradient, Role::up_bias));
    }
    rows.kernels().activation_backward(kernels::Activation::silu, dz, z, z);
    if (adds) {
      rows.kernels().matmul(1, z, Transpose::yes, before, Transpose::no, 1, matrix(rows, Part::gradient, Role::down));
      rows.kernels().sum_columns(1, z, {}, vector(rows, Part::gradient, Role::down_bias));
    }
    rows.kernels().matmul(1, z, Transpose::no, matrix(rows, Part::parameter, Role::down), Transpose::no, 1, dy);
  }

 private:
  static costmodel::Module site(const AdapterRows& rows) { return costmodel::modules_of(rows.group).front(); }
  static Matrix matrix(const AdapterRows& rows, Part part, Role role) {
    return rows.adapter.matrix(part, rows.layer, role, site(rows));
  }
  static kernels::Vector vector(const AdapterRows& rows, Part part, Role role) {
    return rows.adapter.row(part, rows.layer, role, site(rows));
  }
  static Buffer activate(const AdapterRows& rows, ConstMatrix z) {
    Buffer activated = rows.context.pool.take(z.rows * z.columns);
    rows.kernels().activation_forward(kernels::Activation::silu, z, activated.matrix(z.rows, z.columns));
    return activated;
  }
};

}  // namespace

const AdapterKind& bottleneck_kind() {
  static const Bottleneck kind;
  return kind;
}

}  // namespace braid::exec
