#include "costmodel/shapes/adapter.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace braid::costmodel {
namespace {

constexpr std::array<std::string_view, kModuleCount> kModuleNames = {"q_proj",    "k_proj",  "v_proj",    "o_proj",
                                                                     "gate_proj", "up_proj", "down_proj", "qkv_proj"};
constexpr std::array<std::string_view, kAdapterMethodCount> kMethodNames = {
    "lora", "dora", "vera", "ia3", "prefix_tuning", "bottleneck", "diff_pruning"};

}  // namespace

std::string_view module_name(Module module) {
  return kModuleNames[static_cast<std::size_t>(module)];
}

Module module_of(std::string_view name) {
  for (const Module module : kModules) {
    if (module_name(module) == name) return module;
  }
  throw error("unknown module '{}'; valid modules: {}", name, fmt::join(kModuleNames, ", "));
}

ModuleShape module_shape(const BackboneShape& backbone, Module module) {
  switch (module) {
    case Module::q:
      return {backbone.hidden, backbone.query_width()};
    case Module::k:
    case Module::v:
      return {backbone.hidden, backbone.kv_width()};
    case Module::o:
      return {backbone.query_width(), backbone.hidden};
    case Module::gate:
    case Module::up:
      return {backbone.hidden, backbone.intermediate};
    case Module::qkv:
      return {backbone.hidden, backbone.qkv_width()};
    case Module::down:
      break;
  }
  return {backbone.intermediate, backbone.hidden};
}

std::string_view name(AdapterMethod method) {
  return kMethodNames[static_cast<std::size_t>(method)];
}

std::int64_t AdapterShape::rank_of(Module module) const {
  const std::int64_t own = module_ranks[static_cast<std::size_t>(module)];
  return own != 0 ? own : rank;
}

double AdapterShape::alpha_of(Module module) const {
  const double own = module_alphas[static_cast<std::size_t>(module)];
  return own != 0 ? own : alpha;
}

double AdapterShape::scaling(Module module) const {
  const auto divisor = static_cast<double>(rank_of(module));
  return alpha_of(module) / (rank_stabilized ? std::sqrt(divisor) : divisor);
}

std::int64_t AdapterShape::differences(const BackboneShape& backbone, Module module) const {
  const ModuleShape shape = module_shape(backbone, module);
  return rank_of(module) * (shape.in + shape.out);
}

std::int64_t AdapterShape::layer_parameters(const BackboneShape& backbone) const {
  if (method == AdapterMethod::prefix_tuning) return 2 * rank * backbone.kv_width();
  std::int64_t count = 0;
  for (const Module module : kModules) {
    if (!has(module)) continue;
    const ModuleShape shape = module_shape(backbone, module);
    switch (method) {
      case AdapterMethod::lora:
        count += rank_of(module) * (shape.in + shape.out);
        break;
      case AdapterMethod::dora:
        count += rank_of(module) * (shape.in + shape.out) + shape.out;
        break;
      case AdapterMethod::vera:
        count += rank + shape.out;
        break;
      case AdapterMethod::ia3:
        count += scales_input(module) ? shape.in : shape.out;
        break;
      case AdapterMethod::bottleneck:
        count += 2 * rank * shape.out + rank + shape.out;
        break;
      case AdapterMethod::diff_pruning:
        count += differences(backbone, module);
        break;
      case AdapterMethod::prefix_tuning:
        break;
    }
  }
  return count;
}

std::span<const Module> modules_of(ModuleGroup group) {
  static constexpr std::array kQkv = {Module::q, Module::k, Module::v};
  static constexpr std::array kO = {Module::o};
  static constexpr std::array kGateUp = {Module::gate, Module::up};
  static constexpr std::array kDown = {Module::down};
  switch (group) {
    case ModuleGroup::qkv:
      return kQkv;
    case ModuleGroup::o:
      return kO;
    case ModuleGroup::gate_up:
      return kGateUp;
    case ModuleGroup::down:
      break;
  }
  return kDown;
}

std::span<const Module> modules_of(const BackboneShape& backbone, ModuleGroup group) {
  const std::span<const Module> modules = modules_of(group);
  return group == ModuleGroup::gate_up && !backbone.gated() ? modules.last(1) : modules;
}

bool has_bias(const BackboneShape& backbone, ModuleGroup group) {
  return backbone.biased() || (group == ModuleGroup::qkv && backbone.qkv_bias);
}

std::span<const Module> targets_of(ModuleGroup group) {
  static constexpr std::array kQkv = {Module::q, Module::k, Module::v, Module::qkv};
  return group == ModuleGroup::qkv ? kQkv : modules_of(group);
}

bool targets_any(const AdapterShape& adapter, ModuleGroup group) {
  const std::span<const Module> modules = targets_of(group);
  return std::any_of(modules.begin(), modules.end(), [&](Module module) { return adapter.has(module); });
}

bool changes_output(const AdapterShape& adapter, ModuleGroup group) {
  const std::span<const Module> modules = targets_of(group);
  return std::any_of(modules.begin(), modules.end(), [&](Module module) {
    const bool scales = adapter.method == AdapterMethod::dora || adapter.method == AdapterMethod::bottleneck ||
                        (adapter.method == AdapterMethod::ia3 && !adapter.scales_input(module));
    return scales && adapter.has(module);
  });
}

std::int64_t low_rank_width(const AdapterShape& adapter, ModuleGroup group) {
  std::int64_t width = 0;
  for (const Module module : targets_of(group)) width += adapter.has(module) ? adapter.rank_of(module) : 0;
  return width;
}

std::int64_t kept_width(const AdapterShape& adapter, const BackboneShape& shard, ModuleGroup group) {
  std::int64_t width = 0;
  for (const Module module : targets_of(group)) {
    if (!adapter.has(module)) continue;
    const std::int64_t out = module_shape(shard, module).out;
    switch (adapter.method) {
      case AdapterMethod::lora:
      case AdapterMethod::vera:
        width += adapter.rank_of(module);
        break;
      case AdapterMethod::dora:
      case AdapterMethod::bottleneck:
        width += adapter.rank_of(module) + out;
        break;
      case AdapterMethod::ia3:
        width += adapter.scales_input(module) ? 0 : out;
        break;
      case AdapterMethod::prefix_tuning:
      case AdapterMethod::diff_pruning:
        break;
    }
  }
  return width;
}

std::int64_t kept_width(const AdapterShape& adapter, const BackboneShape& shard) {
  std::int64_t width = 0;
  for (const ModuleGroup group : kModuleGroups) width += kept_width(adapter, shard, group);
  return width;
}

}  // namespace braid::costmodel
