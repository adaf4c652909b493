#include "exec/adapters/targets.h"

namespace braid::exec {
namespace {

using kernels::ConstMatrix;
using kernels::Matrix;
using Part = Adapter::Part;

/// y += Δ x, Δ sparse at fixed places.
class DiffPruning final : public AdapterKind {
 public:
  void forward(const AdapterRows& rows, ConstMatrix x, Matrix y) const override {
    for_outputs(rows, [&](const Target& target, const TargetOutputs& outputs, const kernels::SparsePlaces& places) {
      rows.kernels().sparse_forward(places, numbers(rows, Part::parameter, target), x,
                                    y.column_range(outputs.column, outputs.last_column()));
    });
  }

  void backward(const AdapterRows& rows, ConstMatrix x, ConstMatrix dy, Matrix dx) const override {
    for_outputs(rows, [&](const Target& target, const TargetOutputs& outputs, const kernels::SparsePlaces& places) {
      rows.kernels().sparse_backward(places, numbers(rows, Part::parameter, target), x,
                                     dy.column_range(outputs.column, outputs.last_column()),
                                     numbers(rows, Part::gradient, target), dx);
    });
  }

 private:
  static kernels::Vector numbers(const AdapterRows& rows, Part part, const Target& target) {
    return rows.adapter.row(part, rows.layer, Role::difference, target.module);
  }
  template <typename Body>
  static void for_outputs(const AdapterRows& rows, const Body& body) {
    const Share in = rows.context.shard.inputs(costmodel::modules_of(rows.group).front());
    for (const Target& target : targets_of(rows)) {
      const Places& all = rows.adapter.places(rows.layer, target.module);
      for (const TargetOutputs& outputs : target.outputs)
        body(target, outputs,
             kernels::SparsePlaces{all.rows.view(), all.columns.view(), outputs.rows.first, outputs.rows.last, in.first,
                                   in.last});
    }
  }
};

}  // namespace

const AdapterKind& diff_pruning_kind() {
  static const DiffPruning kind;
  return kind;
}

}  // namespace braid::exec
