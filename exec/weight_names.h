#pragma once

#include <string>

#include "costmodel/shapes/family.h"
#include "exec/files/safetensors.h"

namespace braid::exec {

/// Where a module's weight and bias stand: NAME.weight and NAME.bias.
struct ModuleTensor {
  std::string name;
  std::int64_t in = 0;   ///< of the weight in the file
  std::int64_t out = 0;  ///< likewise; the module's outputs are those from `first` on
  std::int64_t first = 0;
  bool transposed = false;  ///< [in, out]
};

/// What a Hugging Face folder calls a backbone's tensors: with "model." in front, or whatever the family has there, or
/// as a model without a head is saved without it.
class WeightNames {
 public:
  /// Holds the folder's tensors against those that the backbone has. Throws Error that names a tensor of its layers,
  /// its embedding or its head which nothing takes up, as it would change what is computed; tensors beside the backbone
  /// are named in a notice. A head that differs from the embedding that it should be tied to is taken, with a notice,
  /// as transformers 5 does.
  WeightNames(const SafetensorsFolder& tensors, const costmodel::BackboneShape& backbone);

  const std::string& embedding() const { return embedding_; }
  const std::string& head() const { return head_; }
  std::string positions() const { return fmt::format("{}{}.weight", prefix_, family_.positions); }
  /// Of norms without ".weight" and ".bias".
  std::string final_norm() const { return fmt::format("{}{}", prefix_, family_.final_norm); }
  std::string norm(std::int64_t layer, costmodel::Slot slot) const;
  std::string query_norm(std::int64_t layer) const { return in_layer(layer, family_.query_norm); }
  std::string key_norm(std::int64_t layer) const { return in_layer(layer, family_.key_norm); }
  ModuleTensor module(std::int64_t layer, costmodel::Module module) const;

 private:
  std::string in_layer(std::int64_t layer, std::string_view name) const;

  costmodel::BackboneShape backbone_;
  const costmodel::FamilyNames& family_;
  std::string prefix_, embedding_, head_;
};

}  // namespace braid::exec
