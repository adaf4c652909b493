#pragma once

#include <array>
#include <string>
#include <string_view>

#include "costmodel/shapes/adapter.h"
#include "costmodel/shapes/layer_ops.h"

namespace braid::costmodel {

/// How Hugging Face calls the parts of a family's models, in files of weights and of adapters. A part's name stands
/// for its tensors, NAME.weight and, where it has one, NAME.bias. What a family does not have is empty.
struct FamilyNames {
  std::string_view model = {};      ///< before all names but the head's; a model saved without a head leaves it out
  std::string_view layers = {};     ///< then this and a layer's number: "layers."
  std::string_view embedding = {};  ///< of tokens
  std::string_view positions = {};  ///< learned ones
  std::string_view final_norm = {};
  std::array<std::string_view, kModuleCount> modules{};  ///< within a layer; what adapters may be attached to
  std::array<std::string_view, kSlotCount> norms{};      ///< within a layer, by the slot that the norm writes
  std::string_view query_norm = {}, key_norm = {};       ///< of each head
  std::string_view qkv = {};  ///< within a layer, where queries, keys and values are one module of three
  bool transposed = false;    ///< weights of layers are stored [in, out], as GPT-2's Conv1D has them
  std::string_view name(Module module) const { return modules[static_cast<std::size_t>(module)]; }
  std::string_view norm(Slot slot) const { return norms[static_cast<std::size_t>(slot)]; }
};
const FamilyNames& family_names(Architecture architecture);
inline constexpr std::string_view kHeadName = "lm_head";

/// What a target is called among others of the family: the last part of its name within a layer, or where another has
/// the same, more of it. Of a module that the family does not have, Llama's name.
std::string_view target_name(Architecture architecture, Module module);

/// "model.layers.3."
std::string layer_prefix(Architecture architecture, std::int64_t layer);

}  // namespace braid::costmodel
