#include "exec/adapters/lora.h"

namespace braid::exec {

using costmodel::Module;
using kernels::ConstMatrix;
using kernels::Matrix;
using kernels::Transpose;
using Part = Adapter::Part;

Matrix LowRank::stacked_a(Part part) const {
  const Share in = rows_.context.shard.inputs(costmodel::modules_of(rows_.group).front());
  return rows_.adapter.stacked_a(part, rows_.layer, rows_.group).column_range(in.first, in.last);
}

Matrix LowRank::a(Part part, Module module) const {
  const Share in = rows_.context.shard.inputs(costmodel::modules_of(rows_.group).front());
  return rows_.adapter.a(part, rows_.layer, module).column_range(in.first, in.last);
}

Matrix LowRank::b(Part part, Module module, Share outputs) const {
  return rows_.adapter.b(part, rows_.layer, module).row_range(outputs.first, outputs.last);
}

void LowRank::down(ConstMatrix x, Matrix low_rank) const {
  if (rows_.dropout() == 0)
    return kernels_.matmul(1, x, Transpose::no, stacked_a(Part::parameter), Transpose::yes, 0, low_rank);
  for_inputs(rows_, x, [&](const Target& target, ConstMatrix input) {
    kernels_.matmul(1, input, Transpose::no, a(Part::parameter, target.module), Transpose::yes, 0,
                    low_rank.column_range(target.first, target.last));
  });
}

void LowRank::up(ConstMatrix low_rank, Matrix y) const {
  for (const Target& target : targets_of(rows_)) {
    for (const TargetOutputs& outputs : target.outputs)
      kernels_.matmul(rows_.adapter.scaling(target.module), low_rank.column_range(target.first, target.last),
                      Transpose::no, b(Part::parameter, target.module, outputs.rows), Transpose::yes, 1,
                      y.column_range(outputs.column, outputs.last_column()));
  }
}

void LowRank::backward(ConstMatrix x, ConstMatrix dy, Matrix dx) const {
  const std::int64_t columns = costmodel::low_rank_width(rows_.adapter.shape(), rows_.group);
  const Matrix low_rank = rows_.kept.low_rank.matrix(x.rows, columns);
  const Buffer gradient = rows_.context.pool.take(x.rows * columns);
  const Matrix d_low_rank = gradient.matrix(x.rows, columns);
  for (const Target& target : targets_of(rows_)) {
    const float scaling = rows_.adapter.scaling(target.module);
    float keeps = 0;
    for (const TargetOutputs& outputs : target.outputs) {
      const ConstMatrix d_out = dy.column_range(outputs.column, outputs.last_column());
      kernels_.matmul(scaling, d_out, Transpose::yes, low_rank.column_range(target.first, target.last), Transpose::no,
                      1, b(Part::gradient, target.module, outputs.rows));
      kernels_.matmul(scaling, d_out, Transpose::no, b(Part::parameter, target.module, outputs.rows), Transpose::no,
                      keeps, d_low_rank.column_range(target.first, target.last));
      keeps = 1;
    }
  }
  if (rows_.dropout() == 0) {
    kernels_.matmul(1, d_low_rank, Transpose::yes, x, Transpose::no, 1, stacked_a(Part::gradient));
    if (dx.rows > 0) kernels_.matmul(1, d_low_rank, Transpose::no, stacked_a(Part::parameter), Transpose::no, 1, dx);
    return;
  }
  for (const Target& target : targets_of(rows_)) {
    const ConstMatrix d_target = d_low_rank.column_range(target.first, target.last);
    const Buffer input = dropped(rows_, target.module, x);
    const Matrix masked = input.matrix(x.rows, x.columns);
    kernels_.matmul(1, d_target, Transpose::yes, masked, Transpose::no, 1, a(Part::gradient, target.module));
    if (dx.rows == 0) continue;
    kernels_.matmul(1, d_target, Transpose::no, a(Part::parameter, target.module), Transpose::no, 0, masked);
    drop_into(rows_, target.module, masked, true, dx);
  }
}

namespace {

class Lora final : public AdapterKind {
 public:
  void forward(const AdapterRows& rows, ConstMatrix x, Matrix y) const override {
    const std::int64_t columns = costmodel::low_rank_width(rows.adapter.shape(), rows.group);
    rows.kept.low_rank = rows.context.pool.take(x.rows * columns);
    const Matrix low_rank = rows.kept.low_rank.matrix(x.rows, columns);
    LowRank(rows).down(x, low_rank);
    LowRank(rows).up(low_rank, y);
  }
  void backward(const AdapterRows& rows, ConstMatrix x, ConstMatrix dy, Matrix dx) const override {
    LowRank(rows).backward(x, dy, dx);
  }
};

}  // namespace

const AdapterKind& lora_kind() {
  static const Lora kind;
  return kind;
}

}  // namespace braid::exec
