#include "costmodel/storage.h"

namespace braid::costmodel {

Storage gpu_storage(DataType type) {
  Storage storage;
  storage.weights = type;
  storage.activations = activation_type(type);
  storage.packed_twice = false;
  storage.keeps_operator_inputs = true;
  storage.whole_logits = true;
  storage.block = Bytes{2} << 20;
  storage.context = 400'000'000;
  return storage;
}

}  // namespace braid::costmodel
