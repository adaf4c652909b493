#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "costmodel/shapes/backbone.h"

namespace braid::costmodel {

/// The linear layers of a decoder layer that an adapter may be attached to (MuxTune §3.2: BaseOps).
/// `qkv` is q, k and v in one, as GPT-2 has them: an adapter on it has one A for all three.
enum class Module { q, k, v, o, gate, up, down, qkv };
inline constexpr int kModuleCount = 8;
inline constexpr std::array<Module, kModuleCount> kModules = {Module::q,    Module::k,  Module::v,    Module::o,
                                                              Module::gate, Module::up, Module::down, Module::qkv};

/// Llama's name whatever the family: q_proj, ...; what a family itself calls it stands in family.h.
std::string_view module_name(Module module);
/// Throws Error that lists the names.
Module module_of(std::string_view name);

/// A module's weight is [out, in].
struct ModuleShape {
  std::int64_t in = 0;
  std::int64_t out = 0;
};
ModuleShape module_shape(const BackboneShape& backbone, Module module);

/// Modules that read the same input, so that their adapters can share a pass over it.
enum class ModuleGroup { qkv, o, gate_up, down };
inline constexpr std::array<ModuleGroup, 4> kModuleGroups = {ModuleGroup::qkv, ModuleGroup::o, ModuleGroup::gate_up,
                                                             ModuleGroup::down};
/// The modules that the group's frozen product is made of, side by side; of a backbone those that it has.
std::span<const Module> modules_of(ModuleGroup group);
std::span<const Module> modules_of(const BackboneShape& backbone, ModuleGroup group);
/// Whether the group's frozen product has a bias.
bool has_bias(const BackboneShape& backbone, ModuleGroup group);
/// Those that adapters may be attached to: them, and what is several of them in one.
std::span<const Module> targets_of(ModuleGroup group);
/// Of a tensor-parallel frozen product: its rows are split, and so are A's of its adapters, and the partial sums of all
/// shards meet after it. The others' columns are split, and so are B's.
constexpr bool splits_rows(ModuleGroup group) {
  return group == ModuleGroup::o || group == ModuleGroup::down;
}

/// Every module that is not several in one.
inline constexpr std::array<bool, kModuleCount> kSeparateModules = {true, true, true, true, true, true, true, false};

/// What a mask of dropout takes for each number: PyTorch keeps Booleans.
inline constexpr std::int64_t kMaskBytes = 1;

/// How an adapter changes what its targets compute, or the layer around them.
enum class AdapterMethod {
  lora,           ///< y += scaling · B A dropout(x), A [r, in], B [out, r] (Hu et al. 2021)
  dora,           ///< y = m / |W + scaling · B A| ⊙ (W x + scaling · B A x) + bias, norms of rows (Liu et al. 2024)
  vera,           ///< y += b ⊙ B (d ⊙ A dropout(x)), A and B random, frozen and one for all (Kopiczko et al. 2024)
  ia3,            ///< y = l ⊙ (W x + bias), or with scaled inputs y = W (l ⊙ x) + bias (Liu et al. 2022)
  prefix_tuning,  ///< `rank` keys and values before each sequence in every layer (Li and Liang 2021)
  bottleneck,  ///< y += U silu(D y + c) + e after attention (o) and the feed-forward layer (down) (Houlsby et al. 2019)
  diff_pruning  ///< y += Δ x, Δ with rank · (in + out) numbers other than 0 at fixed places (Guo et al. 2021; SHiRA)
};
inline constexpr int kAdapterMethodCount = 7;
/// "lora", "prefix_tuning", ...
std::string_view name(AdapterMethod method);

/// One task's adapter. Of a method without r or alpha these are 0.
struct AdapterShape {
  std::int64_t rank = 0;
  double alpha = 0.0;
  bool rank_stabilized = false;  ///< rsLoRA: scaling alpha / sqrt(r) in place of alpha / r
  double dropout = 0.0;
  std::array<bool, kModuleCount> targets{};
  std::array<std::int64_t, kModuleCount> module_ranks{};  ///< in place of rank (PEFT's rank_pattern); 0: rank
  std::array<double, kModuleCount> module_alphas{};       ///< in place of alpha (PEFT's alpha_pattern); 0: alpha
  AdapterMethod method = AdapterMethod::lora;
  bool scales_inputs = false;  ///< IA³: of `down`, as PEFT's feedforward_modules says

  bool has(Module module) const { return targets[static_cast<std::size_t>(module)]; }
  /// Keys and values that it puts before each sequence.
  std::int64_t virtual_tokens() const { return method == AdapterMethod::prefix_tuning ? rank : 0; }
  /// Whether it scales that target's input, not its output.
  bool scales_input(Module module) const {
    return method == AdapterMethod::ia3 && scales_inputs && module == Module::down;
  }
  std::int64_t rank_of(Module module) const;
  double alpha_of(Module module) const;
  /// By which a module's B A is multiplied.
  double scaling(Module module) const;
  /// Numbers of a Diff-pruned module's difference.
  std::int64_t differences(const BackboneShape& backbone, Module module) const;
  /// Trainable numbers in one decoder layer.
  std::int64_t layer_parameters(const BackboneShape& backbone) const;

  bool operator==(const AdapterShape&) const = default;
};

/// Whether it targets any of them.
bool targets_any(const AdapterShape& adapter, ModuleGroup group);

/// Whether it changes what the product wrote, not only adds to it, so that going back the product's output has another
/// gradient than the layer's: DoRA and IA³ scale it, a bottleneck adapter reads it.
bool changes_output(const AdapterShape& adapter, ModuleGroup group);

/// Numbers that the group's targets make of a token between A and B: the sum of their ranks.
std::int64_t low_rank_width(const AdapterShape& adapter, ModuleGroup group);
/// Numbers of a token that a layer keeps beside the group's product on a shard, for the adapter's way back, and over
/// all groups.
std::int64_t kept_width(const AdapterShape& adapter, const BackboneShape& shard, ModuleGroup group);
std::int64_t kept_width(const AdapterShape& adapter, const BackboneShape& shard);

}  // namespace braid::costmodel
