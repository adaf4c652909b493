#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/node.h"
#include "costmodel/shapes/adapter.h"

/// What PEFT's LoraConfig says, in a workload's adapter or an adapter_config.json; private to this folder.
namespace braid::workload {

inline constexpr std::int64_t kMostRank = 1 << 16;

/// The linear layers that names and patterns are held against: model.layers.N.self_attn.q_proj and so on. What a
/// family calls otherwise goes by Llama's name too, and GPT-2's attention is planned with q_proj, k_proj and v_proj as
/// well as with c_attn, which is all three in one.
struct ModuleNames {
  std::int64_t layers = 1;
  costmodel::Architecture architecture = costmodel::Architecture::llama;

  /// What an adapter may name.
  std::vector<costmodel::Module> modules() const;
  /// The family's own.
  std::vector<costmodel::Module> own_modules() const;
  /// The family's name, and Llama's where that is another.
  std::vector<std::string> full_names(std::int64_t layer, costmodel::Module module) const;
};

/// "q_proj v_proj"
std::string described(const std::array<bool, costmodel::kModuleCount>& targets);

/// PEFT's modules of attention, in a family's own.
std::array<bool, costmodel::kModuleCount> attention_targets(const ModuleNames& names);

/// Those that PEFT's IA³ has unless they are named: keys, values and the feed-forward layer's last product.
std::array<bool, costmodel::kModuleCount> ia3_targets(const ModuleNames& names);

/// Whether `node`, PEFT's feedforward_modules, names that last product, and nothing else, as products that share their
/// input cannot have it scaled apart. Throws Error.
bool scales_down_input(const Node& node, const ModuleNames& names);

/// Which modules `node`, PEFT's target_modules, selects: 'all-linear', a regular expression that whole names match, or
/// a list of names or of what names end with. Every layer must have the same. Throws Error for a name that is none, for
/// what selects layers apart, and for modules that are not of decoder layers.
std::array<bool, costmodel::kModuleCount> targets_from(const Node& node, const ModuleNames& names);

/// PEFT's alpha_pattern: for each target the alpha of the first key that its name ends with, as a regular expression;
/// 0 where there is none. Throws Error for a key that no target has, and for what differs between layers.
std::array<double, costmodel::kModuleCount> alphas_from(const Node& node, const costmodel::AdapterShape& adapter,
                                                        const ModuleNames& names);

/// PEFT's rank_pattern likewise.
std::array<std::int64_t, costmodel::kModuleCount> ranks_from(const Node& node, const costmodel::AdapterShape& adapter,
                                                             const ModuleNames& names);

/// Holds an adapter_config.json of PEFT against the task's adapter that is to begin with it: what changes the
/// arithmetic must be the same, or nothing. Throws Error that names the key and what would do.
void check_peft_config(const Node& config, const costmodel::AdapterShape& adapter, const ModuleNames& names);

}  // namespace braid::workload
