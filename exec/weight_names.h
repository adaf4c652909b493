#pragma once

#include <string>

#include "costmodel/shapes/backbone.h"
#include "exec/files/safetensors.h"

namespace braid::exec {

/// What a Hugging Face folder calls a backbone's tensors: with "model." in front, or as a model without a head is saved
/// without it.
class WeightNames {
 public:
  /// Holds the folder's tensors against those that the backbone has. Throws Error that names a tensor of its layers,
  /// its embedding or its head which nothing takes up, as it would change what is computed; tensors beside the backbone
  /// are named in a notice. A head that differs from the embedding that it should be tied to is taken, with a notice,
  /// as transformers 5 does.
  WeightNames(const SafetensorsFolder& tensors, const costmodel::BackboneShape& backbone);

  const std::string& embedding() const { return embedding_; }
  const std::string& head() const { return head_; }
  std::string final_norm() const { return prefix_ + "norm.weight"; }
  /// "model.layers.3."
  std::string layer(std::int64_t layer) const;

 private:
  std::string prefix_, embedding_, head_;
};

}  // namespace braid::exec
