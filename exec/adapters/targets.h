#pragma once

#include <vector>

#include "exec/adapters/adapter_kind.h"

namespace braid::exec {

/// Rows of a target's weight that are the shard's, and the columns of y that they give.
struct TargetOutputs {
  Share rows;
  std::int64_t column = 0;
  std::int64_t last_column() const { return column + rows.count(); }
};

/// A module of the product that the adapter is attached to.
struct Target {
  costmodel::Module module;
  std::vector<TargetOutputs> outputs;  ///< of the shard
  std::int64_t first = 0;              ///< of its columns between A and B, [first, last)
  std::int64_t last = 0;
};
std::vector<Target> targets_of(const AdapterRows& rows);

/// The module's dropout of the rows' input.
kernels::DropoutRows dropout_of(const AdapterRows& rows, costmodel::Module module);
/// The rows' x with the module's dropout, whose mask is that of every pass over them. PEFT drops each module's input
/// apart.
Buffer dropped(const AdapterRows& rows, costmodel::Module module, kernels::ConstMatrix x);
/// The same into y, or added to it.
void drop_into(const AdapterRows& rows, costmodel::Module module, kernels::ConstMatrix x, bool accumulate,
               kernels::Matrix y);

/// Calls body(target, input [T, in]) for each with x, or with its own dropped x.
template <typename Body>
void for_inputs(const AdapterRows& rows, kernels::ConstMatrix x, const Body& body) {
  for (const Target& target : targets_of(rows)) {
    if (rows.dropout() == 0) {
      body(target, x);
    } else {
      const Buffer input = dropped(rows, target.module, x);
      body(target, kernels::ConstMatrix(input.matrix(x.rows, x.columns)));
    }
  }
}

/// The numbers of a row that belong to those outputs.
inline kernels::Vector of_outputs(kernels::Vector row, const TargetOutputs& outputs) {
  return row.range(outputs.rows.first, outputs.rows.last);
}

}  // namespace braid::exec
