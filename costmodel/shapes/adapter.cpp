#include "costmodel/shapes/adapter.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace braid::costmodel {
namespace {

constexpr std::array<std::string_view, kModuleCount> kModuleNames = {"q_proj",    "k_proj",  "v_proj",    "o_proj",
                                                                     "gate_proj", "up_proj", "down_proj", "qkv_proj"};

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

std::int64_t AdapterShape::low_rank_width() const {
  std::int64_t width = 0;
  for (const Module module : kModules) width += has(module) ? rank_of(module) : 0;
  return width;
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

std::int64_t AdapterShape::layer_parameters(const BackboneShape& backbone) const {
  std::int64_t count = 0;
  for (const Module module : kModules) {
    if (!has(module)) continue;
    const ModuleShape shape = module_shape(backbone, module);
    count += rank_of(module) * (shape.in + shape.out);
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

std::int64_t low_rank_width(const AdapterShape& adapter, ModuleGroup group) {
  std::int64_t width = 0;
  for (const Module module : targets_of(group)) width += adapter.has(module) ? adapter.rank_of(module) : 0;
  return width;
}

}  // namespace braid::costmodel
