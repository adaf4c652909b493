#include "exec/adapters/targets.h"

namespace braid::exec {
namespace {

using costmodel::Module;
using kernels::ConstMatrix;
using kernels::Matrix;
using Part = Adapter::Part;

/// y = l ⊙ (W x + bias), or y = W (l ⊙ x) + bias. A vector's gradient reads what it scaled: outputs are kept, inputs
/// made again.
class Ia3 final : public AdapterKind {
 public:
  void scale_input(const AdapterRows& rows, Matrix x) const override {
    if (scales_input(rows)) rows.kernels().scale_columns(of_inputs(rows, Part::parameter), x, false, x);
  }

  void forward(const AdapterRows& rows, ConstMatrix /*x*/, Matrix y) const override {
    if (scales_input(rows)) return;
    rows.kept.output = rows.context.pool.take(y.rows * width(rows));
    const Matrix kept = rows.kept.output.matrix(y.rows, width(rows));
    for_outputs(rows, [&](const Target& target, const TargetOutputs& outputs, std::int64_t column) {
      const Matrix part = y.column_range(outputs.column, outputs.last_column());
      rows.kernels().copy(part, kept.column_range(column, column + part.columns));
      rows.kernels().scale_columns(vector(rows, Part::parameter, target, outputs), part, false, part);
    });
  }

  void backward_output(const AdapterRows& rows, ConstMatrix /*x*/, Matrix dy) const override {
    if (scales_input(rows)) return;
    const Matrix kept = rows.kept.output.matrix(dy.rows, width(rows));
    for_outputs(rows, [&](const Target& target, const TargetOutputs& outputs, std::int64_t column) {
      const Matrix part = dy.column_range(outputs.column, outputs.last_column());
      rows.kernels().sum_columns(1, part, kept.column_range(column, column + part.columns),
                                 vector(rows, Part::gradient, target, outputs));
      rows.kernels().scale_columns(vector(rows, Part::parameter, target, outputs), part, false, part);
    });
  }

  void backward_input(const AdapterRows& rows, ConstMatrix x, Matrix dx) const override {
    if (!scales_input(rows)) return;
    rows.kernels().sum_columns(1, dx, x, of_inputs(rows, Part::gradient));
    rows.kernels().scale_columns(of_inputs(rows, Part::parameter), dx, false, dx);
  }

 private:
  static bool scales_input(const AdapterRows& rows) {
    return rows.group == costmodel::ModuleGroup::down && rows.adapter.shape().scales_input(Module::down);
  }
  static std::int64_t width(const AdapterRows& rows) {
    return costmodel::kept_width(rows.adapter.shape(), rows.context.shard.part(), rows.group);
  }
  static kernels::Vector of_inputs(const AdapterRows& rows, Part part) {
    const Share in = rows.context.shard.inputs(Module::down);
    return rows.adapter.row(part, rows.layer, Role::scale, Module::down).range(in.first, in.last);
  }
  static kernels::Vector vector(const AdapterRows& rows, Part part, const Target& target,
                                const TargetOutputs& outputs) {
    return of_outputs(rows.adapter.row(part, rows.layer, Role::scale, target.module), outputs);
  }
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
};

}  // namespace

const AdapterKind& ia3_kind() {
  static const Ia3 kind;
  return kind;
}

}  // namespace braid::exec
