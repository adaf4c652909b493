#include "exec/profiling/measure.h"

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "costmodel/shapes.h"
#include "exec/late_device.h"
#include "exec/ranks/thread_ranks.h"

namespace braid::exec {
namespace {

using costmodel::Operator;
using costmodel::Pass;

/// As a GPU: it computes later than it is called, its memory is its own, and ranks meet in groups of devices.
TEST(MeasureProfile, DevicesOfTheirOwnMemoryAreMeasuredByTheirEvents) {
  set_thread_count(1);
  run_on_threads(2, [](Communicator& communicator) {
    const std::unique_ptr<kernels::Device> device =
        make_late_device(static_cast<std::uint64_t>(7 + communicator.rank()), true);
    MeasureRequest request;
    request.backbone = costmodel::small_backbone();
    costmodel::AdapterShape adapter{4, 8.0, false, 0.0, {}};
    adapter.targets = costmodel::kSeparateModules;
    request.adapters = {adapter};
    request.backend = "cuda-f32";
    std::vector<MeasuredPoint> points = {uniform_point(0, 24, 12, 0, 22)};
    points[0].attends = points[0].needed = true;
    request.next = [&](const costmodel::Profile&, double) { return std::exchange(points, {}); };
    const costmodel::Profile profile = measure_profile(request, communicator, *device);
    if (communicator.rank() != 0) return;
    EXPECT_EQ(profile.backend, "cuda-f32");
    EXPECT_TRUE(profile.on_gpus());
    EXPECT_EQ(profile.storage().packed_twice, false);
    const auto median_of = [&](Operator op, Pass pass, std::int64_t tokens) {
      for (const costmodel::ProfileEntry& entry : profile.entries)
        if (entry.op == op && entry.pass == pass && entry.tokens == tokens) return entry.seconds;
      return -1.0;
    };
    for (const Operator op : {Operator::linear, Operator::lora, Operator::rms_norm, Operator::swiglu}) {
      EXPECT_GT(median_of(op, Pass::forward, 24), 0) << name(op);
      EXPECT_GT(median_of(op, Pass::backward, 24), 0) << name(op);
    }
    EXPECT_GT(median_of(Operator::copy, Pass::forward, 1 << 20), 0);
    EXPECT_GT(median_of(Operator::launch, Pass::forward, 1), 0);
    for (const Operator op : {Operator::send_recv, Operator::all_reduce, Operator::all_gather})
      for (const std::int64_t bytes : {64, 1 << 20}) EXPECT_GT(median_of(op, Pass::forward, bytes), 0) << name(op);
  });
}

}  // namespace
}  // namespace braid::exec
