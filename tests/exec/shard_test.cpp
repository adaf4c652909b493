#include "exec/shard.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "costmodel/work/operators.h"

namespace braid::exec {
namespace {

costmodel::BackboneShape backbone() {
  costmodel::BackboneShape shape;
  shape.layers = 2, shape.hidden = 64, shape.intermediate = 90, shape.vocabulary = 101;
  shape.heads = 8, shape.kv_heads = 2, shape.head_dim = 8;
  return shape;
}

/// Every number of [0, whole) is some shard's; `times` of them have it.
void expect_shared_out(std::int64_t whole, int shards, int times, const std::function<Share(const Shard&)>& of) {
  std::vector<int> had(static_cast<std::size_t>(whole), 0);
  for (int place = 0; place < shards; ++place) {
    const Share share = of(Shard(backbone(), place, shards));
    for (std::int64_t i = share.first; i < share.last; ++i) ++had[static_cast<std::size_t>(i)];
  }
  EXPECT_EQ(had, std::vector<int>(had.size(), times)) << shards;
}

TEST(Shard, EveryRowAndColumnIsSharedOutOnce) {
  using costmodel::Module;
  for (const int shards : {1, 2, 4, 8}) {
    expect_shared_out(101, shards, 1, [](const Shard& shard) { return shard.vocabulary(); });
    for (const Module module : costmodel::kModules) {
      if (module == Module::qkv) continue;
      const costmodel::ModuleShape whole = costmodel::module_shape(backbone(), module);
      const bool keys = module == Module::k || module == Module::v;
      const bool rows = module == Module::o || module == Module::down;
      // Two key/value heads are computed by several of eight ranks.
      const int copies = keys ? std::max(1, shards / 2) : 1;
      expect_shared_out(whole.out, shards, rows ? shards : copies,
                        [&](const Shard& shard) { return shard.outputs(module); });
      expect_shared_out(whole.in, shards, rows ? 1 : shards, [&](const Shard& shard) { return shard.inputs(module); });
    }
  }
}

TEST(Shard, RowsOfQueriesKeysAndValuesInOneAreThoseOfEach) {
  using costmodel::Module;
  const costmodel::BackboneShape whole = backbone();
  EXPECT_EQ(Shard(whole).output_runs(Module::qkv).size(), 1u);
  for (const int shards : {2, 4, 8}) {
    for (int place = 0; place < shards; ++place) {
      const Shard shard(whole, place, shards);
      std::vector<std::int64_t> expected, got;
      std::int64_t before = 0;
      for (const Module module : {Module::q, Module::k, Module::v}) {
        const Share own = shard.outputs(module);
        for (std::int64_t row = own.first; row < own.last; ++row) expected.push_back(before + row);
        before += costmodel::module_shape(whole, module).out;
      }
      for (const Share run : shard.output_runs(Module::qkv))
        for (std::int64_t row = run.first; row < run.last; ++row) got.push_back(row);
      EXPECT_EQ(got, expected) << place << " of " << shards;
    }
  }
}

/// Each query head finds its key/value head on its own rank.
TEST(Shard, QueryHeadsKeepTheirKeys) {
  const costmodel::BackboneShape whole = backbone();
  for (const int shards : {1, 2, 4, 8}) {
    for (int place = 0; place < shards; ++place) {
      const Shard shard(whole, place, shards);
      const Share queries = shard.outputs(costmodel::Module::q), keys = shard.outputs(costmodel::Module::k);
      for (std::int64_t head = 0; head < shard.part().heads; ++head) {
        const std::int64_t here = head / (shard.part().heads / shard.part().kv_heads);
        const std::int64_t global = queries.first / whole.head_dim + head;
        EXPECT_EQ(keys.first / whole.head_dim + here, global / (whole.heads / whole.kv_heads));
      }
    }
  }
}

/// What is charged is the share of the largest shard, which the first has.
TEST(Shard, TheFirstIsWhatTheCostModelCharges) {
  for (const int shards : {1, 2, 4, 8})
    EXPECT_EQ(Shard(backbone(), 0, shards).part(), costmodel::shard_of(backbone(), shards));
}

TEST(Shard, HeadsThatCannotBeSharedOutEvenlyAreRefused) {
  for (const int shards : {3, 5, 16}) EXPECT_THROW(Shard(backbone(), 0, shards), Error);
}

}  // namespace
}  // namespace braid::exec
