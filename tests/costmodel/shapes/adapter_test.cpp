#include "costmodel/shapes/adapter.h"

#include <cmath>

#include "costmodel/shapes.h"
#include "support.h"

namespace braid::costmodel {
namespace {

TEST(Adapter, ModuleNamesRoundTrip) {
  for (const Module module : kModules) EXPECT_EQ(module_of(module_name(module)), module);
  EXPECT_EQ(module_name(Module::gate), "gate_proj");
  expect_error([] { module_of("key_proj"); }, "unknown module 'key_proj'; valid modules: q_proj, ", "down_proj");
}

TEST(Adapter, LayerParametersAreTheSumOverTargets) {
  const BackboneShape backbone = small_backbone();
  std::int64_t sum = 0;
  for (const Module module : kModules) {
    const ModuleShape shape = module_shape(backbone, module);
    const std::int64_t alone = adapter(5, {module}).layer_parameters(backbone);
    EXPECT_EQ(alone, 5 * (shape.in + shape.out));
    if (module != Module::qkv) sum += alone;
  }
  EXPECT_EQ(adapter_on_all(5).layer_parameters(backbone), sum);
  EXPECT_EQ(adapter(5, {}).layer_parameters(backbone), 0);
}

TEST(Adapter, ModulesHoldALayersLinearWeights) {
  const BackboneShape backbone = small_backbone();
  std::int64_t weights = 2 * backbone.hidden;  // the norms
  for (const ModuleGroup group : kModuleGroups) {
    for (const Module module : modules_of(backbone, group)) {
      const ModuleShape shape = module_shape(backbone, module);
      weights += shape.in * shape.out;
    }
  }
  EXPECT_EQ(weights, backbone.layer_parameters());
  const ModuleShape fused = module_shape(backbone, Module::qkv);
  EXPECT_EQ(fused.in, backbone.hidden);
  EXPECT_EQ(fused.out, backbone.qkv_width());
}

TEST(Adapter, ScalingIsAlphaOverRankOrItsRoot) {
  AdapterShape shape = adapter(16, {Module::q});
  shape.alpha = 24;
  EXPECT_DOUBLE_EQ(shape.scaling(Module::q), 1.5);
  shape.rank_stabilized = true;
  EXPECT_DOUBLE_EQ(shape.scaling(Module::q), 6.0);
}

}  // namespace
}  // namespace braid::costmodel
