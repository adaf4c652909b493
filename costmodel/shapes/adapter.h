#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "costmodel/shapes/backbone.h"

namespace braid::costmodel {

/// The linear layers of a decoder layer that an adapter may be attached to (MuxTune §3.2: BaseOps).
enum class Module { q, k, v, o, gate, up, down };
inline constexpr int kModuleCount = 7;
inline constexpr std::array<Module, kModuleCount> kModules = {Module::q,    Module::k,  Module::v,   Module::o,
                                                              Module::gate, Module::up, Module::down};

/// Hugging Face's name: q_proj, ...
std::string_view module_name(Module module);
/// Throws Error that lists the names.
Module module_of(std::string_view name);

/// A module's weight is [out, in].
struct ModuleShape {
  std::int64_t in = 0;
  std::int64_t out = 0;
};
ModuleShape module_shape(const BackboneShape& backbone, Module module);

/// What a mask of dropout takes for each number: PyTorch keeps Booleans.
inline constexpr std::int64_t kMaskBytes = 1;

/// A LoRA adapter (Hu et al. 2021): y += scaling · B A dropout(x), A [r, in], B [out, r].
struct AdapterShape {
  std::int64_t rank = 0;
  double alpha = 0.0;
  bool rank_stabilized = false;  ///< rsLoRA: scaling alpha / sqrt(r) in place of alpha / r
  double dropout = 0.0;
  std::array<bool, kModuleCount> targets{};
  std::array<std::int64_t, kModuleCount> module_ranks{};  ///< in place of rank (PEFT's rank_pattern); 0: rank
  std::array<double, kModuleCount> module_alphas{};       ///< in place of alpha (PEFT's alpha_pattern); 0: alpha

  bool has(Module module) const { return targets[static_cast<std::size_t>(module)]; }
  /// Numbers that a layer keeps of a token: A's results, over all modules.
  std::int64_t low_rank_width() const;
  std::int64_t rank_of(Module module) const;
  double alpha_of(Module module) const;
  /// By which a module's B A is multiplied.
  double scaling(Module module) const;
  /// Trainable numbers in one decoder layer.
  std::int64_t layer_parameters(const BackboneShape& backbone) const;

  bool operator==(const AdapterShape&) const = default;
};

}  // namespace braid::costmodel
