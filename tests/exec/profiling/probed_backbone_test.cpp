#include "exec/profiling/probed_backbone.h"

#include <map>

#include <gtest/gtest.h>

#include "base/error.h"
#include "costmodel/shapes.h"
#include "exec/devices.h"
#include "exec/profiling/reference_pass.h"

namespace braid::exec {
namespace {

using costmodel::small_backbone;

costmodel::AdapterShape adapter_on_all() {
  costmodel::AdapterShape adapter{4, 8.0, false, 0.0, {}};
  adapter.targets = costmodel::kSeparateModules;
  return adapter;
}

TEST(UniformBatches, HoldEachTokenOnceInChunksThatFollowOneAnother) {
  // Two sequences of 48 and one of 10, in chunks of 16.
  std::vector<Batch> batches;
  for (const planner::Microbatch& microbatch : uniform_point(0, 106, 48, 16, 103).microbatches)
    batches.push_back(random_batch(microbatch, small_backbone().vocabulary));
  ASSERT_EQ(batches.size(), 3u);
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    EXPECT_EQ(batches[i].sequences.size(), i == 0 ? 3u : 2u);
    for (const SampleRows& sequence : batches[i].sequences)
      EXPECT_EQ(sequence.begin, static_cast<std::int64_t>(16 * i));
    rows += batches[i].rows();
  }
  EXPECT_EQ(rows, 106);
}

TEST(ProbedBackbone, HearsEveryOperatorOfItsLayersOnce) {
  ProbedBackbone backbone(small_backbone(), 3, cpu_device());
  const costmodel::AdapterShape adapter = adapter_on_all();
  backbone.set_adapters({&adapter, 1});
  const ProbedBackbone::Passes passes = backbone.run(uniform_point(0, 24, 12, 0, 22), true);
  // What the cost model says of such a pass, and no more; of attention one call is heard for all sequences.
  const costmodel::MicrobatchLoad load{24, 22, {{0, 12}}, {{adapter_on_all(), 24}}};
  for (const auto& [pass, records] :
       {std::pair(costmodel::Pass::forward, passes.forward), std::pair(costmodel::Pass::backward, passes.backward)}) {
    std::map<std::pair<costmodel::Operator, costmodel::OperatorShape>, double> told, heard;
    for (const costmodel::OperatorCall& call :
         costmodel::stage_operators(small_backbone(), {3, true, true}, load, pass, costmodel::cpu_storage())) {
      if (call.op != costmodel::Operator::dispatch) told[{call.op, call.shape}] += call.count;
    }
    double seconds = 0;
    for (const Probe::Record& record : records) {
      heard[{record.call.op, record.call.shape}] += 1;
      seconds += record.seconds;
    }
    EXPECT_EQ(heard, told);
    const bool forward = pass == costmodel::Pass::forward;
    EXPECT_LE(seconds, forward ? passes.forward_seconds : passes.backward_seconds);
  }
}

TEST(ProbedBackbone, HearsNothingUnlessAsked) {
  ProbedBackbone backbone(small_backbone(), 2, cpu_device());
  const costmodel::AdapterShape adapter = adapter_on_all();
  backbone.set_adapters({&adapter, 1});
  const ProbedBackbone::Passes passes = backbone.run(uniform_point(0, 24, 12, 0, 22), false);
  EXPECT_TRUE(passes.forward.empty());
  EXPECT_TRUE(passes.backward.empty());
  EXPECT_GT(passes.forward_seconds, 0);
  EXPECT_GT(passes.backward_seconds, 0);
}

TEST(ReferencePass, TakesTimeOnAnyBackbone) {
  costmodel::BackboneShape backbone = small_backbone();
  backbone.layers = 1;
  const std::unique_ptr<Communicator> communicator = make_local_communicator();
  ReferencePass reference(backbone, cpu_device());
  EXPECT_GT(reference.seconds(*communicator), 0);
}

TEST(ReferencePass, OneThatIsHeldUpDoesNotShow) {
  const std::vector<double> references = {1, 1, 9, 1, 2, 2};
  EXPECT_EQ(reference_around(references, 0), 1);
  EXPECT_EQ(reference_around(references, 2), 1);  // of 1, 1, 9, 1
  EXPECT_EQ(reference_around(references, 4), 2);  // of 9, 1, 2, 2
  EXPECT_EQ(reference_around(references, 6), 2);
  EXPECT_THROW(reference_around({}, 0), InternalError);
}

TEST(ReferencePass, TimesAtAnUnusualPaceAreLeftOutWhereOthersRemain) {
  const std::vector<double> seconds = {2.0, 2.2, 6.0, 1.8}, paces = {1.0, 1.1, 1.5, 0.9};
  EXPECT_EQ(at_usual_pace(seconds, paces, 3), (std::vector<double>{2.0 / 1.0, 2.2 / 1.1, 1.8 / 0.9}));
  EXPECT_EQ(at_usual_pace(seconds, paces, 4), (std::vector<double>{2.0 / 1.0, 2.2 / 1.1, 6.0 / 1.5, 1.8 / 0.9}));
  EXPECT_THROW(at_usual_pace(seconds, {}, 3), InternalError);
}

}  // namespace
}  // namespace braid::exec
