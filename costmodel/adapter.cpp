#include "costmodel/adapter.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace braid::costmodel {
namespace {

constexpr std::array<std::string_view, kModuleCount> kModuleNames = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                                                     "gate_proj", "up_proj", "down_proj"};

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
    case Module::down:
      break;
  }
  return {backbone.intermediate, backbone.hidden};
}

std::int64_t AdapterShape::low_rank_width() const {
  return rank * std::count(targets.begin(), targets.end(), true);
}

double AdapterShape::scaling() const {
  return alpha / (rank_stabilized ? std::sqrt(static_cast<double>(rank)) : static_cast<double>(rank));
}

std::int64_t AdapterShape::layer_parameters(const BackboneShape& backbone) const {
  std::int64_t count = 0;
  for (const Module module : kModules) {
    if (!has(module)) continue;
    const ModuleShape shape = module_shape(backbone, module);
    count += rank * (shape.in + shape.out);
  }
  return count;
}

}  // namespace braid::costmodel
