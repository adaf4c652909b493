#include "exec/adapters/adapter_kind.h"

namespace braid::exec {

void AdapterKind::forward_all(std::span<const AdapterRows> tasks, kernels::ConstMatrix x, kernels::Matrix y) const {
  for (const AdapterRows& rows : tasks) forward(rows, rows_of(rows, x), rows_of(rows, y));
}

void AdapterKind::backward_all(std::span<const AdapterRows> tasks, kernels::ConstMatrix x, kernels::ConstMatrix dy,
                               kernels::Matrix dx) const {
  for (const AdapterRows& rows : tasks) backward(rows, rows_of(rows, x), rows_of(rows, dy), rows_of(rows, dx));
}

const AdapterKind* kind_of(costmodel::AdapterMethod method) {
  using costmodel::AdapterMethod;
  switch (method) {
    case AdapterMethod::lora:
      return &lora_kind();
    case AdapterMethod::dora:
      return &dora_kind();
    case AdapterMethod::vera:
      return &vera_kind();
    case AdapterMethod::ia3:
      return &ia3_kind();
    case AdapterMethod::bottleneck:
      return &bottleneck_kind();
    case AdapterMethod::diff_pruning:
      return &diff_pruning_kind();
    case AdapterMethod::prefix_tuning:
      break;
  }
  return nullptr;
}

}  // namespace braid::exec
