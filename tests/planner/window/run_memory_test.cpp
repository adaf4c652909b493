#include "planner/window/run_memory.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/random_plans.h"
#include "planner/window/program_stream.h"
#include "planner/window/window.h"

namespace braid::planner {
namespace {

/// What every rank needs in the run's Programs, one after another.
RankMemory walked(const FixedPlan& fixed, const WindowInput& input) {
  const MemoryContext context = memory_context(fixed, input.workload);
  RankMemory ranks;
  ProgramStream run(fixed, input, 0, window_count(fixed, input));
  while (const std::optional<Slice> slice = run.next())
    ranks.raise(slice->program, walk_memory(slice->program, context));
  return ranks;
}

/// A random plan with a few windows, whose samples are drawn anew in each.
struct Run {
  testing::RandomPlan drawn;
  workload::SampleIndex samples;

  static Run any() {
    testing::RandomPlan drawn = testing::any_plan();
    for (workload::Task& task : drawn.workload.tasks) task.steps = *rc::gen::inRange(1, 13);
    drawn.fixed.storage =
        *rc::gen::arbitrary<bool>() ? costmodel::Storage{} : costmodel::gpu_storage(costmodel::DataType::bf16);
    drawn.fixed.storage.attention = drawn.attention;
    workload::SampleIndex samples(drawn.workload.tasks, drawn.sizes);
    return {std::move(drawn), std::move(samples)};
  }
  const FixedPlan& fixed() const { return drawn.fixed; }
  WindowInput input() const { return {drawn.workload, samples}; }
};

constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

RC_GTEST_PROP(RunMemory, IsWhatEveryRankNeedsWhereAllIsWalked, ()) {
  const Run run = Run::any();
  const RunMemory told = run_memory(run.fixed(), run.input(), kAll);
  const RankMemory all = walked(run.fixed(), run.input());
  RC_ASSERT(told.peak == all.peak);
  RC_ASSERT(told.held == all.held);
}

/// A stream that begins with a window may need more there than one that comes by.
RC_GTEST_PROP(RunMemory, OfAFewWindowsIsLittleLess, ()) {
  const Run run = Run::any();
  const RunMemory told = run_memory(run.fixed(), run.input(), 0);
  const RankMemory all = walked(run.fixed(), run.input());
  RC_ASSERT(told.held == all.held);
  for (std::size_t rank = 0; rank < all.peak.size() && !streams(run.fixed()); ++rank)
    RC_ASSERT(told.peak[rank] <= all.peak[rank]);
  const auto most = [](const std::vector<Bytes>& peaks) { return *std::max_element(peaks.begin(), peaks.end()); };
  RC_ASSERT(static_cast<double>(most(told.peak)) >= 0.85 * static_cast<double>(most(all.peak)));
}

RC_GTEST_PROP(RunMemory, TellsWindowsThatHoldTheMost, ()) {
  const Run run = Run::any();
  if (streams(run.fixed())) return;
  const RunMemory told = run_memory(run.fixed(), run.input(), kAll);
  const MemoryContext context = memory_context(run.fixed(), run.input().workload);
  std::map<std::int32_t, Bytes> of_telling, of_all;
  const std::int64_t windows = window_count(run.fixed(), run.input());
  for (std::int64_t window = 0; window < windows; ++window) {
    const Program program = window_program(run.fixed(), run.input(), window);
    const std::vector<StageMemory> stages = walk_memory(program, context);
    const bool tells = std::binary_search(told.telling_windows.begin(), told.telling_windows.end(), window);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      for (auto* most : {&of_all, tells ? &of_telling : &of_all}) {
        Bytes& peak = (*most)[program.stages[s].stage];
        peak = std::max(peak, stages[s].peak());
      }
    }
  }
  RC_ASSERT(of_telling == of_all);
}

}  // namespace
}  // namespace braid::planner
