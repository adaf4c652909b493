#include "exec/adapters/adapter_kind.h"

namespace braid::exec {

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
