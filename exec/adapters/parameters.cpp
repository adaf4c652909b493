#include "exec/adapters/parameters.h"

namespace braid::exec {
namespace {

using costmodel::AdapterMethod;
using costmodel::Module;
using costmodel::ModuleShape;

/// All of one module but A and B, which stand group by group.
void add_module(const costmodel::BackboneShape& backbone, const costmodel::AdapterShape& adapter, Module module,
                std::vector<ParameterShape>& all) {
  const ModuleShape shape = costmodel::module_shape(backbone, module);
  const std::int64_t rank = adapter.rank_of(module);
  switch (adapter.method) {
    case AdapterMethod::dora:
      all.push_back({Role::magnitude, module, 1, shape.out, Initial::row_norms});
      return;
    case AdapterMethod::vera:
      all.push_back({Role::lambda_d, module, 1, adapter.rank, Initial::tenth});
      all.push_back({Role::lambda_b, module, 1, shape.out, Initial::zeros});
      return;
    case AdapterMethod::ia3:
      all.push_back({Role::scale, module, 1, adapter.scales_input(module) ? shape.in : shape.out, Initial::ones});
      return;
    case AdapterMethod::bottleneck:
      all.push_back({Role::down, module, rank, shape.out, Initial::small_normal});
      all.push_back({Role::down_bias, module, 1, rank, Initial::zeros});
      all.push_back({Role::up, module, shape.out, rank, Initial::small_normal});
      all.push_back({Role::up_bias, module, 1, shape.out, Initial::zeros});
      return;
    case AdapterMethod::diff_pruning:
      all.push_back({Role::difference, module, 1, adapter.differences(backbone, module), Initial::zeros});
      return;
    case AdapterMethod::lora:
    case AdapterMethod::prefix_tuning:
      return;
  }
}

}  // namespace

std::vector<ParameterShape> layer_parameters(const costmodel::BackboneShape& backbone,
                                             const costmodel::AdapterShape& adapter) {
  std::vector<ParameterShape> all;
  if (adapter.method == AdapterMethod::prefix_tuning) {
    all.push_back({Role::prefix, Module::q, adapter.rank, 2 * backbone.kv_width(), Initial::normal});
    return all;
  }
  const bool low_rank = adapter.method == AdapterMethod::lora || adapter.method == AdapterMethod::dora;
  for (const costmodel::ModuleGroup group : costmodel::kModuleGroups) {
    const auto targets = costmodel::targets_of(group);
    for (const Module module : targets) {
      if (low_rank && adapter.has(module))
        all.push_back(
            {Role::a, module, adapter.rank_of(module), costmodel::module_shape(backbone, module).in, Initial::uniform});
    }
    for (const Module module : targets) {
      if (low_rank && adapter.has(module))
        all.push_back(
            {Role::b, module, costmodel::module_shape(backbone, module).out, adapter.rank_of(module), Initial::zeros});
    }
    for (const Module module : targets) {
      if (adapter.has(module)) add_module(backbone, adapter, module, all);
    }
  }
  return all;
}

}  // namespace braid::exec
