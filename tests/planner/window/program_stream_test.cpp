#include "planner/window/program_stream.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "base/random.h"
#include "planner/lora_pipeline.h"
#include "planner/policies/common_options.h"
#include "planner/program/memory_walk.h"
#include "planner/studies.h"
#include "planner/window/bin_batcher.h"
#include "planner/window/slice_bytes.h"
#include "planner/window/window.h"

namespace braid::planner {
namespace {

using namespace testing;

constexpr std::uint64_t kDraws = 300;
constexpr std::int64_t kManySteps = 1000;

/// A plan that streams, drawn by a number.
struct Drawn {
  workload::Workload workload;
  workload::SampleIndex samples;
  FixedPlan fixed;

  WindowInput input() const { return {workload, samples}; }
  VerifyContext context() const { return verify_context(fixed, input(), 0); }
};

enum class Together { all, turns, admissions };

/// Sets of hTasks for some windows each, until all have had theirs.
std::vector<Admission> any_admissions(std::vector<std::int64_t> windows, RandomStream& random) {
  std::vector<Admission> admissions;
  while (std::any_of(windows.begin(), windows.end(), [](std::int64_t left) { return left > 0; })) {
    Admission admission{kManySteps, {}};
    for (std::size_t h = 0; h < windows.size(); ++h) {
      if (windows[h] == 0 || random.next_below(3) == 0) continue;
      admission.htasks.push_back(static_cast<std::int32_t>(h));
      admission.windows = std::min(admission.windows, windows[h]);
    }
    if (admission.htasks.empty()) continue;
    admission.windows -= static_cast<std::int64_t>(random.next_below(static_cast<std::uint64_t>(admission.windows)));
    for (const std::int32_t htask : admission.htasks) windows[static_cast<std::size_t>(htask)] -= admission.windows;
    admissions.push_back(std::move(admission));
  }
  return admissions;
}

Drawn drawn(std::uint64_t seed, Together together = Together::all) {
  RandomStream random(seed);
  const auto below = [&](std::uint64_t count) { return static_cast<std::int64_t>(random.next_below(count)); };
  std::vector<StudyTask> tasks(static_cast<std::size_t>(1 + below(5)));
  const bool alike = below(3) == 0;
  for (StudyTask& task : tasks) {
    task = {32 << below(3), 1 + below(5), 1 + below(14), 8, below(2) == 0};
    if (alike) task.steps = tasks.front().steps;
  }
  const std::int64_t stages = 1 + below(4);
  FixedPlan fixed;
  ReplicaShape replica{static_cast<std::int32_t>(1 + below(4) / 3), {}};
  for (std::int32_t s = 0; s < stages; ++s) replica.layers.push_back({s, s + 1});
  fixed.deployment = {replica};
  fixed.schedule.pipeline = std::array{PipelineTemplate::lora_1f1b, PipelineTemplate::lora_gpipe,
                                       PipelineTemplate::stream}[static_cast<std::size_t>(below(3))];
  for (TaskIndex task = 0; task < static_cast<TaskIndex>(tasks.size()); ++task) {
    if (fixed.htasks.empty() || below(2) == 0) fixed.htasks.emplace_back();
    fixed.htasks.back().push_back(task);
  }
  for (std::int32_t htask = 0; htask < static_cast<std::int32_t>(fixed.htasks.size()); ++htask) {
    if (fixed.buckets.empty() || below(2) == 0) fixed.buckets.emplace_back();
    fixed.buckets.back().push_back(htask);
    if (together == Together::turns) fixed.schedule.turns.push_back({htask});
  }
  fixed.batching.padding = below(2) == 0 ? Padding::none : Padding::max_length;
  if (below(3) == 0) fixed.batching.chunk_size = kChunkUnit * (1 + below(2));
  fixed.batching.microbatches = 1 + below(4);
  fixed.schedule.transfer_share = std::array{0.0, 0.3, 0.9}[static_cast<std::size_t>(below(3))];
  if (fixed.schedule.pipeline != PipelineTemplate::stream) {
    for (std::int64_t more = below(3); more > 0; --more)
      fixed.deployment.push_back(
          deploy(stages, 1 + below(2), 1 + below(static_cast<std::uint64_t>(stages)), 1).front());
    std::int64_t longest = 0;
    for (const StudyTask& task : tasks) longest = std::max(longest, task.max_length);
    const std::int64_t multiple = std::array{1, 16, 64}[static_cast<std::size_t>(below(3))];
    if (fixed.batching.chunk_size == 0 && below(2) == 0)
      fixed.batching.bins = {longest + multiple + below(400), multiple,
                             std::array{BinSearch::greedy, BinSearch::searched}[below(2)], below(3) > 0};
  }
  fixed.schedule.steps_per_window = std::array{1, 2, 3, 8}[static_cast<std::size_t>(below(4))];
  workload::Workload workload = study_workload(tasks, stages);
  workload::SampleIndex samples = study_samples(workload);
  if (together == Together::admissions) {
    std::vector<std::int64_t> windows;
    for (const std::vector<TaskIndex>& htask : fixed.htasks) {
      std::int64_t steps = 0;
      for (const TaskIndex task : htask) steps = std::max(steps, samples.steps(task));
      windows.push_back((steps + fixed.schedule.steps_per_window - 1) / fixed.schedule.steps_per_window);
    }
    fixed.schedule.admissions = any_admissions(std::move(windows), random);
  }
  return {std::move(workload), std::move(samples), std::move(fixed)};
}

std::vector<Slice> slices_of(const Drawn& plan, std::int64_t first = 0) {
  ProgramStream stream(plan.fixed, plan.input(), first, window_count(plan.fixed, plan.input()));
  std::vector<Slice> slices;
  while (std::optional<Slice> slice = stream.next()) slices.push_back(std::move(*slice));
  return slices;
}

Program whole_of(Drawn plan) {
  plan.fixed.schedule.steps_per_window = kManySteps;
  return window_program(plan.fixed, plan.input(), 0);
}

/// What an instruction says, microbatches numbered by their ids' order.
using Said = std::tuple<Kind, Stream, TaskIndex, std::int64_t, std::int64_t, ChannelIndex, GroupIndex, std::int32_t,
                        Bytes, std::vector<InstructionId>, std::vector<std::int64_t>>;

std::vector<std::vector<Said>> said_by(const std::vector<const Program*>& slices) {
  std::map<MicrobatchId, std::int64_t> number;
  for (const Program* slice : slices) {
    for (const Microbatch& microbatch : slice->microbatches) number[microbatch.id] = 0;
  }
  std::int64_t next = 0;
  for (auto& [id, place] : number) place = next++;
  number[kNone] = kNone;
  std::vector<std::vector<Said>> stages(slices.front()->stages.size());
  for (const Program* slice : slices) {
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const StageProgram& stage = slice->stages[s];
      EXPECT_EQ(stage.first_id, static_cast<InstructionId>(stages[s].size()));
      for (const Instruction& i : stage.instructions) {
        const auto waits = stage.waits_of(i);
        std::vector<std::int64_t> parts;
        for (const Part& part : stage.parts_of(i)) parts.push_back(number.at(part.microbatch));
        stages[s].emplace_back(i.kind, i.stream, i.task, i.global_batch, number.at(i.microbatch), i.channel, i.group,
                               i.layers.first, i.bytes, std::vector<InstructionId>(waits.begin(), waits.end()), parts);
      }
    }
  }
  return stages;
}

TEST(ProgramStream, SlicesPutTogetherAreTheOrderOfTheWholeRun) {
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    const Drawn plan = drawn(seed);
    const Program whole = whole_of(plan);
    const std::vector<Slice> slices = slices_of(plan);
    std::vector<const Program*> programs;
    for (const Slice& slice : slices) programs.push_back(&slice.program);
    EXPECT_EQ(said_by(programs), said_by({&whole})) << seed;
  }
}

TEST(ProgramStream, SlicesAreGoodAndTheirBoundariesChain) {
  for (const Together together : {Together::all, Together::turns, Together::admissions}) {
    for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
      const Drawn plan = drawn(seed, together);
      const VerifyContext context = plan.context();
      Boundary last;
      for (const Slice& slice : slices_of(plan)) {
        ASSERT_EQ(messages_of(verify(slice.program, context)), "") << seed << " window " << slice.window;
        EXPECT_TRUE(slice.begins || slice.program.before == last) << seed << " window " << slice.window;
        for (const StageBoundary& stage : slice.program.before.stages) EXPECT_TRUE(!slice.begins || stage.live.empty());
        last = slice.program.after;
      }
      for (const StageBoundary& stage : last.stages) {
        EXPECT_TRUE(stage.live.empty() && stage.gradients.empty() && stage.awaited.empty());
        for (std::size_t task = 0; task < stage.next_batch.size(); ++task)
          EXPECT_EQ(stage.next_batch[task], plan.samples.steps(static_cast<int>(task))) << seed << " task " << task;
      }
    }
  }
}

TEST(ProgramStream, SlicesReplayedOneAfterAnotherTakeTheTimesOfTheWholeRun) {
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    const Drawn plan = drawn(seed);
    Costs costs;
    for (int s = 0; s < 4; ++s) costs.forward.push_back(100 + 7 * s), costs.backward.push_back(140 - 5 * s);
    costs.send = 35, costs.norm = 20, costs.step = 11, costs.sync = 40;
    const Program whole = whole_of(plan);
    const auto times = [](std::vector<Event> events) {
      std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
        return std::tuple(a.rank, a.instruction) < std::tuple(b.rank, b.instruction);
      });
      return events;
    };
    std::vector<Event> chained;
    Clocks clocks;
    for (const Slice& slice : slices_of(plan)) {
      const std::vector<Event> events = sim::replay(slice.program, durations_of(slice.program, costs), &clocks).events;
      chained.insert(chained.end(), events.begin(), events.end());
    }
    EXPECT_EQ(times(chained), times(sim::replay(whole, durations_of(whole, costs)).events)) << seed;
  }
}

/// Receives posted ahead are those of one slice; all else is held however the stream is cut.
TEST(ProgramStream, SlicesHoldWhatTheWholeRunHolds) {
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    const Drawn plan = drawn(seed);
    const MemoryContext context = memory_context(plan.fixed, plan.workload);
    const std::vector<StageMemory> whole = walk_memory(whole_of(plan), context);
    std::vector<Bytes> most(whole.size(), 0);
    for (const Slice& slice : slices_of(plan)) {
      const std::vector<StageMemory> memories = walk_memory(slice.program, context);
      for (std::size_t s = 0; s < most.size(); ++s) most[s] = std::max(most[s], memories[s].peak());
    }
    for (std::size_t s = 0; s < most.size(); ++s) {
      EXPECT_LE(most[s], whole[s].peak()) << seed;
      EXPECT_GE(most[s], whole[s].peak() - whole[s].messages) << seed;
    }
  }
}

using StepKey = std::pair<TaskIndex, std::int64_t>;

std::set<StepKey> steps_of(const std::vector<WindowStep>& steps) {
  std::set<StepKey> keys;
  for (const WindowStep& step : steps) keys.emplace(step.task, step.global_batch);
  return keys;
}

/// Where the group of a later norm cannot be split, a slice has some Steps of the next window on early stages; where
/// that of a later sync cannot be, on any of several replicas; and where all of a batch was merged into the window.
TEST(ProgramStream, ASliceHoldsItsWindowsStepsThatNoSliceBeforeHeld) {
  int early = 0, all = 0;
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    const Drawn plan = drawn(seed, static_cast<Together>(seed % 3));
    std::vector<std::set<StepKey>> taken(slices_of(plan).front().program.stages.size());
    std::int64_t window = 0;
    for (const Slice& slice : slices_of(plan)) {
      EXPECT_EQ(slice.window, window++);
      EXPECT_EQ(steps_of(slice.steps), steps_of(window_steps(plan.fixed, plan.input(), slice.window)));
      for (std::size_t s = 0; s < taken.size(); ++s) {
        for (const Instruction& instruction : slice.program.stages[s].instructions) {
          if (instruction.kind != Kind::step) continue;
          EXPECT_TRUE(taken[s].emplace(instruction.task, instruction.global_batch).second);
          const bool own = steps_of(slice.steps).contains({instruction.task, instruction.global_batch});
          const bool plain = plan.fixed.deployment.size() == 1 && !plan.fixed.batching.bins;
          EXPECT_TRUE(own || !plain || s + 1 < taken.size()) << seed << " window " << slice.window << " stage " << s;
          if (plain) early += own ? 0 : 1, ++all;
        }
        for (const StepKey& step : steps_of(slice.steps))
          EXPECT_TRUE(taken[s].contains(step)) << seed << " window " << slice.window << " stage " << s;
      }
    }
    EXPECT_EQ(window, window_count(plan.fixed, plan.input()));
  }
  EXPECT_LT(early, all / 100);
}

TEST(ProgramStream, TasksThatAreStoppedTakeNoFurtherStepsThanAreLaidOut) {
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    const Drawn plan = drawn(seed);
    const VerifyContext context = plan.context();
    ProgramStream stream(plan.fixed, plan.input(), 0, window_count(plan.fixed, plan.input()));
    std::int64_t latest = std::numeric_limits<std::int64_t>::max();
    while (const std::optional<Slice> slice = stream.next()) {
      ASSERT_EQ(messages_of(verify(slice->program, context)), "") << seed << " window " << slice->window;
      for (const WindowStep& step : slice->steps) EXPECT_TRUE(step.task != 0 || step.global_batch <= latest) << seed;
      if (slice->window != static_cast<std::int64_t>(seed % 3)) continue;
      stream.stop(0);
      latest = slice->steps.back().global_batch + 3;
    }
  }
}

TEST(ProgramStream, SlicesComeThroughBytesAsTheyAre) {
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    const Drawn plan = drawn(seed);
    for (const Slice& slice : slices_of(plan)) {
      const std::string bytes = to_bytes(slice);
      ASSERT_EQ(slice_from_bytes(bytes), slice) << seed;
      const std::size_t cut = bytes.size() * (slice.window % 7) / 7;
      EXPECT_THROW(slice_from_bytes(std::string_view(bytes).substr(0, cut)), InternalError);
      EXPECT_THROW(slice_from_bytes(bytes + "1"), InternalError);
    }
  }
}

TEST(ProgramStream, ThePartsOfASliceAreAllOfItsLists) {
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    const Drawn plan = drawn(seed);
    const Slice slice = slices_of(plan).front();
    Program together = slice.program;
    for (std::size_t s = 0; s < together.stages.size(); ++s) {
      const Slice part = part_of(slice, static_cast<StageIndex>(s));
      together.stages[s] = part.program.stages[s];
      for (std::size_t other = 0; other < together.stages.size(); ++other) {
        EXPECT_EQ(part.program.stages[other].ranks, slice.program.stages[other].ranks);
        EXPECT_TRUE(other == s || part.program.stages[other].instructions.empty());
      }
      for (const Part& passed : part.program.stages[s].parts)
        EXPECT_EQ(part.program.microbatch(passed.microbatch), slice.program.microbatch(passed.microbatch));
      EXPECT_EQ(part.program.after, slice.program.after);
      EXPECT_EQ(part.steps, slice.steps);
    }
    EXPECT_EQ(together, slice.program) << seed;
  }
}

TEST(ProgramStream, EndsWithWhatIsLaidOut) {
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    const Drawn plan = drawn(seed);
    ProgramStream stream(plan.fixed, plan.input(), 0, window_count(plan.fixed, plan.input()));
    const std::optional<Slice> first = stream.next();
    stream.end();
    Program last = first->program;
    while (std::optional<Slice> slice = stream.next()) {
      EXPECT_LE(slice->steps.back().global_batch, first->steps.back().global_batch + 4);
      last = std::move(slice->program);
    }
    for (const StageBoundary& stage : last.after.stages) EXPECT_TRUE(stage.live.empty() && stage.gradients.empty());
  }
}

/// What it is by itself is what it is in the run, though bins are filled with rows of the windows around.
TEST(ProgramStream, AWindowOfBinsIsLaidOutFromAFewBefore) {
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    const Drawn plan = drawn(seed);
    if (!plan.fixed.batching.bins) continue;
    const std::vector<Slice> slices = slices_of(plan);
    for (std::size_t window = 2; window < slices.size(); ++window) {
      const std::int64_t place = slices[window].window;
      ProgramStream stream(plan.fixed, plan.input(), first_laid_out_for(plan.fixed, place), place + 1);
      std::optional<Slice> found = stream.next();
      while (found && found->window < place) found = stream.next();
      ASSERT_TRUE(found);
      // The last one knows of none that follow.
      const auto without_last = [](std::vector<Microbatch> microbatches) {
        microbatches.resize(microbatches.size() - std::min<std::size_t>(microbatches.size(), 8));
        return microbatches;
      };
      const std::vector<Microbatch> here = without_last(found->microbatches),
                                    there = without_last(slices[window].microbatches);
      ASSERT_EQ(here.size(), there.size()) << seed;
      for (std::size_t i = 0; i < here.size(); ++i) {
        EXPECT_EQ(here[i].id, there[i].id);
        EXPECT_EQ(here[i].segments.size(), there[i].segments.size()) << seed << " window " << place;
      }
    }
  }
}

/// Tasks alike, all microbatches of one size.
Drawn alike(const LoraCase& one, PipelineTemplate pipeline, std::int64_t steps_per_window) {
  const std::vector<StudyTask> tasks(static_cast<std::size_t>(one.tasks), {32, one.microbatches, 60, 8, false});
  FixedPlan fixed;
  fixed.deployment = deploy(one.stages, 1, one.stages, 1);
  one_task_per_htask(one.tasks, fixed);
  fixed.schedule.pipeline = pipeline;
  fixed.batching.padding = Padding::max_length;
  fixed.batching.microbatches = one.microbatches;
  fixed.schedule.steps_per_window = steps_per_window;
  workload::Workload workload = study_workload(tasks, one.stages);
  workload::SampleIndex samples(
      workload.tasks,
      std::vector(tasks.size(), std::vector(static_cast<std::size_t>(one.microbatches), workload::SampleSize{32, 31})));
  return {std::move(workload), std::move(samples), std::move(fixed)};
}

/// mLoRA §3.2.2: slices idle as the stream does in mid-stream, none for a drain of its own.
TEST(ProgramStream, BubblesOfSlicesAreThoseOfTheClosedForm) {
  for (const LoraCase& one : lora_cases()) {
    if (one.tasks > 5 || one.stages > 5 || one.microbatches > 4) continue;
    for (const std::int64_t steps : {1, 4}) {
      const Drawn plan = alike(one, PipelineTemplate::lora_1f1b, steps);
      ProgramStream stream(plan.fixed, plan.input(), 0, window_count(plan.fixed, plan.input()));
      Clocks clocks;
      std::map<std::int64_t, Nanoseconds> ends;  // of a step of all tasks
      while (const std::optional<Slice> slice = stream.next()) {
        const Costs costs = even_costs(one.stages, 10, 20, 0);
        const Timeline timeline = sim::replay(slice->program, durations_of(slice->program, costs), &clocks);
        const StageProgram& stage = slice->program.stages.front();
        for (const Event& event : timeline.events) {
          if (event.stage != 0 || event.kind != Kind::step) continue;
          const Instruction& step = stage.instructions[static_cast<std::size_t>(event.instruction - stage.first_id)];
          ends[step.global_batch] = std::max(ends[step.global_batch], event.end);
        }
      }
      const double busy = 40.0 * one.tasks * one.microbatches * 30;
      EXPECT_NEAR(1 - busy / static_cast<double>(ends.at(52) - ends.at(12)), lora_closed_form(one), 1e-9)
          << "L " << one.tasks << " D " << one.stages << " N " << one.microbatches << ", slices of " << steps;
    }
  }
}

}  // namespace
}  // namespace braid::planner
