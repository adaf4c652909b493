#include <gtest/gtest.h>

#include "exec/example/random_weights.h"
#include "exec/profiling/probed_backbone.h"
#include "kernels/device.h"

/// What executes plans stands without the kernels of any machine: this program links none but the reference.
namespace braid::exec {
namespace {

TEST(ExecAlone, TrainsOnTheReferenceDevice) {
  costmodel::BackboneShape shape;
  shape.layers = 2, shape.hidden = 16, shape.intermediate = 24, shape.vocabulary = 40;
  shape.heads = shape.kv_heads = 2, shape.head_dim = 8;
  costmodel::AdapterShape adapter;
  adapter.rank = 2, adapter.alpha = 2;
  adapter.targets = costmodel::kSeparateModules;
  const std::unique_ptr<kernels::Device> device = kernels::make_reference_device();
  ProbedBackbone backbone(shape, 2, *device);
  backbone.set_adapters({&adapter, 1});
  const ProbedBackbone::Passes passes = backbone.run(uniform_point(0, 24, 12, 0, 22), true);
  EXPECT_FALSE(passes.forward.empty());
  EXPECT_FALSE(passes.backward.empty());
  EXPECT_TRUE(device->library_versions().empty());
}

}  // namespace
}  // namespace braid::exec
