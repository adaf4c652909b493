#include "exec/adapters/lora.h"

#include <algorithm>

namespace braid::exec {

using costmodel::Module;
using kernels::ConstMatrix;
using kernels::Dropped;
using kernels::MatmulCall;
using kernels::Matrix;
using kernels::Transpose;
using Part = Adapter::Part;

void Products::add(const MatmulCall& call, std::size_t turn) {
  turns_.resize(std::max(turns_.size(), turn + 1));
  turns_[turn].push_back(call);
}

void Products::run() {
  for (const std::vector<MatmulCall>& calls : turns_) kernels_.matmul_group(calls);
  turns_.clear();
}

std::vector<MatmulCall> Products::in_order() const {
  std::vector<MatmulCall> all;
  for (const std::vector<MatmulCall>& calls : turns_) all.insert(all.end(), calls.begin(), calls.end());
  return all;
}

std::int64_t LowRank::width() const {
  return costmodel::low_rank_width(rows_.adapter.shape(), rows_.group);
}

Buffer LowRank::take_low_rank(std::int64_t count) const {
  return rows_.context.pool.take(count * width());
}

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

void LowRank::down(ConstMatrix x, Matrix low_rank, Products& products) const {
  if (rows_.dropout() == 0) {
    products.add({1, x, Transpose::no, stacked_a(Part::parameter), Transpose::yes, 0, low_rank});
    return;
  }
  for (const Target& target : targets_of(rows_)) {
    const Matrix of_target = a(Part::parameter, target.module);
    const Matrix to = low_rank.column_range(target.first, target.last);
    MatmulCall call{1, x, Transpose::no, of_target, Transpose::yes, 0, to};
    if (drops_in_products()) {
      products.add(dropping(call, Dropped::a, target.module));
      continue;
    }
    const Buffer input = dropped(rows_, target.module, x);
    call.a = input.matrix(x.rows, x.columns);
    kernels_.matmul_group({&call, 1});
  }
}

MatmulCall LowRank::dropping(MatmulCall call, Dropped which, Module module) const {
  call.dropped = which;
  call.drop = dropout_of(rows_, module);
  return call;
}

void LowRank::up(ConstMatrix low_rank, Matrix y, Products& products) const {
  for (const Target& target : targets_of(rows_)) {
    for (const TargetOutputs& outputs : target.outputs)
      products.add({rows_.adapter.scaling(target.module), low_rank.column_range(target.first, target.last),
                    Transpose::no, b(Part::parameter, target.module, outputs.rows), Transpose::yes, 1,
                    y.column_range(outputs.column, outputs.last_column())});
  }
}

void LowRank::add_gradient(float scale, ConstMatrix a, ConstMatrix b, Matrix gradient, Products& products) const {
  if (rows_.adapter.has_exact_sums()) {
    kernels_.outer_sums(scale, a, b, rows_.adapter.sums_of(gradient));
  } else {
    products.add({scale, a, Transpose::yes, b, Transpose::no, 1, gradient});
  }
}

void LowRank::outputs_backward(ConstMatrix dy, Matrix d_low_rank, Products& products) const {
  const Matrix low_rank = rows_.kept.low_rank.matrix(dy.rows, d_low_rank.columns);
  for (const Target& target : targets_of(rows_)) {
    const float scaling = rows_.adapter.scaling(target.module);
    std::size_t turn = 0;
    for (const TargetOutputs& outputs : target.outputs) {
      const ConstMatrix d_out = dy.column_range(outputs.column, outputs.last_column());
      add_gradient(scaling, d_out, low_rank.column_range(target.first, target.last),
                   b(Part::gradient, target.module, outputs.rows), products);
      // Several parts of a target's outputs add up, one after another.
      products.add({scaling, d_out, Transpose::no, b(Part::parameter, target.module, outputs.rows), Transpose::no,
                    turn == 0 ? 0.0F : 1.0F, d_low_rank.column_range(target.first, target.last)},
                   turn);
      ++turn;
    }
  }
}

void LowRank::inputs_backward(ConstMatrix x, ConstMatrix d_low_rank, Matrix dx, Products& products,
                              Products& added) const {
  if (rows_.dropout() == 0) {
    add_gradient(1, d_low_rank, x, stacked_a(Part::gradient), products);
    if (dx.rows > 0) added.add({1, d_low_rank, Transpose::no, stacked_a(Part::parameter), Transpose::no, 1, dx});
    return;
  }
  std::size_t turn = 0;
  for (const Target& target : targets_of(rows_)) {
    const ConstMatrix d_target = d_low_rank.column_range(target.first, target.last);
    if (drops_in_products()) {
      products.add(dropping({1, d_target, Transpose::yes, x, Transpose::no, 1, a(Part::gradient, target.module)},
                            Dropped::b, target.module));
      if (dx.rows > 0)
        added.add(dropping({1, d_target, Transpose::no, a(Part::parameter, target.module), Transpose::no, 1, dx},
                           Dropped::sum, target.module),
                  turn++);
      continue;
    }
    const Buffer input = dropped(rows_, target.module, x);
    const Matrix masked = input.matrix(x.rows, x.columns);
    Products at_once(kernels_);
    add_gradient(1, d_target, masked, a(Part::gradient, target.module), at_once);
    at_once.run();
    if (dx.rows == 0) continue;
    kernels_.matmul(1, d_target, Transpose::no, a(Part::parameter, target.module), Transpose::no, 0, masked);
    drop_into(rows_, target.module, masked, true, dx);
  }
}

void LowRank::down(ConstMatrix x, Matrix low_rank) const {
  Products products(kernels_);
  down(x, low_rank, products);
  products.run();
}

void LowRank::backward(ConstMatrix x, ConstMatrix dy, Matrix dx) const {
  const Buffer gradient = take_low_rank(x.rows);
  const Matrix d_low_rank = gradient.matrix(x.rows, width());
  Products products(kernels_);
  outputs_backward(dy, d_low_rank, products);
  products.run();
  inputs_backward(x, d_low_rank, dx, products, products);
  products.run();
}

namespace {

/// The products of all tasks make one table each: down, up, and going back those by the outputs and those by the
/// inputs.
class Lora final : public AdapterKind {
 public:
  void forward_all(std::span<const AdapterRows> tasks, ConstMatrix x, Matrix y) const override {
    Products added(tasks.front().kernels());
    forward_ahead(tasks, x, y, added);
    added.run();
  }
  void backward_all(std::span<const AdapterRows> tasks, ConstMatrix x, ConstMatrix dy, Matrix dx) const override {
    Products products(tasks.front().kernels());
    backward(tasks, x, dy, dx, products, products);
    products.run();
  }

  bool joins(std::span<const AdapterRows> tasks) const override {
    return std::ranges::all_of(tasks, [](const AdapterRows& rows) { return LowRank(rows).only_products(); });
  }
  void forward_ahead(std::span<const AdapterRows> tasks, ConstMatrix x, Matrix y, Products& added) const override {
    Products products(tasks.front().kernels());
    for (const AdapterRows& rows : tasks) {
      const LowRank low_rank(rows);
      rows.kept.low_rank = low_rank.take_low_rank(rows.count());
      low_rank.down(rows_of(rows, x), rows.kept.low_rank.matrix(rows.count(), low_rank.width()), products);
    }
    products.run();
    for (const AdapterRows& rows : tasks) {
      const LowRank low_rank(rows);
      low_rank.up(rows.kept.low_rank.matrix(rows.count(), low_rank.width()), rows_of(rows, y), added);
    }
  }
  void backward_ahead(std::span<const AdapterRows> tasks, ConstMatrix x, ConstMatrix dy, Matrix dx,
                      Products& added) const override {
    Products products(tasks.front().kernels());
    backward(tasks, x, dy, dx, products, added);
    products.run();
  }

 private:
  /// What is left to make are `products`, and those that are `added` to dx.
  static void backward(std::span<const AdapterRows> tasks, ConstMatrix x, ConstMatrix dy, Matrix dx, Products& products,
                       Products& added) {
    std::vector<Matrix> gradients;
    for (const AdapterRows& rows : tasks) {
      const LowRank low_rank(rows);
      Buffer gradient = low_rank.take_low_rank(rows.count());
      gradients.push_back(gradient.matrix(rows.count(), low_rank.width()));
      added.keep(std::move(gradient));
      low_rank.outputs_backward(rows_of(rows, dy), gradients.back(), products);
    }
    products.run();
    for (std::size_t i = 0; i < tasks.size(); ++i)
      LowRank(tasks[i]).inputs_backward(rows_of(tasks[i], x), gradients[i], rows_of(tasks[i], dx), products, added);
  }
};

}  // namespace

const AdapterKind& lora_kind() {
  static const Lora kind;
  return kind;
}

}  // namespace braid::exec
