#include "costmodel/shapes/layer_ops.h"

#include <set>

#include <gtest/gtest.h>

#include "costmodel/shapes.h"

namespace braid::costmodel {
namespace {

std::vector<BackboneShape> one_of_each_list() {
  std::vector<BackboneShape> shapes(3, small_backbone());
  shapes[1].qk_norm = true;
  shapes[2].architecture = Architecture::gpt2;
  return shapes;
}

TEST(LayerOps, ReadWhatWasWrittenBeforeAndEndWithTheOutput) {
  for (const BackboneShape& shape : one_of_each_list()) {
    std::set<Slot> written = {Slot::input};
    for (const LayerOp& op : layer_ops(shape)) {
      EXPECT_TRUE(written.contains(op.from));
      EXPECT_TRUE(op.work != LayerWork::residual || written.contains(op.also));
      // Only head norms and rotations work in place.
      EXPECT_EQ(written.insert(op.to).second, op.from != op.to);
    }
    EXPECT_EQ(layer_ops(shape).back().to, Slot::output);
    EXPECT_EQ(written.size(), static_cast<std::size_t>(kSlotCount));
  }
}

TEST(LayerOps, HaveProductsOfAllLinearParametersEachGroupOnce) {
  for (const BackboneShape& shape : one_of_each_list()) {
    std::int64_t parameters = 0;
    std::vector<ModuleGroup> groups;
    for (const LayerOp& op : layer_ops(shape)) {
      if (op.work != LayerWork::linear) continue;
      parameters += width(shape, op.from) * width(shape, op.to);
      groups.push_back(op.group);
    }
    EXPECT_EQ(parameters, shape.linear_parameters());
    EXPECT_EQ(groups, std::vector<ModuleGroup>(kModuleGroups.begin(), kModuleGroups.end()));
  }
}

TEST(LayerOps, KeepOrComputeAgainWhateverAProductReads) {
  for (const BackboneShape& shape : one_of_each_list()) {
    const std::span<const LayerOp> ops = layer_ops(shape);
    for (const LayerOp& op : ops) {
      if (op.work != LayerWork::linear) continue;
      const LayerOp& writer = writer_of(ops, op.from);
      // What is computed again is computed from what is kept.
      EXPECT_TRUE(writer.kept || writer.from == Slot::input || writer_of(ops, writer.from).kept);
    }
  }
}

}  // namespace
}  // namespace braid::costmodel
