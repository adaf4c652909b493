#include "exec/stage_model.h"

#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

#include "base/random.h"
#include "costmodel/work/memory.h"
#include "golden.h"
#include "planner/program/load.h"

namespace braid::exec {
namespace {

using testing::GoldenCase;

costmodel::AdapterShape adapter_shape(std::int64_t rank, double dropout,
                                      std::initializer_list<costmodel::Module> targets) {
  costmodel::AdapterShape shape;
  shape.rank = rank;
  shape.alpha = 2.0 * static_cast<double>(rank);
  shape.dropout = dropout;
  for (const costmodel::Module module : targets) shape.targets[static_cast<std::size_t>(module)] = true;
  return shape;
}

using costmodel::Module;
const std::initializer_list<Module> kAll = {Module::q,    Module::k,  Module::v,   Module::o,
                                            Module::gate, Module::up, Module::down};

/// Several tasks on a golden backbone, with samples of odd lengths.
struct Tasks {
  explicit Tasks(std::vector<costmodel::AdapterShape> adapter_shapes, const char* backbone = "llama",
                 costmodel::Recompute recompute = {})
      : golden(backbone, recompute), shapes(std::move(adapter_shapes)) {
    const auto vocabulary = static_cast<std::uint64_t>(golden.backbone.vocabulary);
    RandomStream random(5);
    for (std::size_t task = 0; task < shapes.size(); ++task) {
      workload::Dataset& dataset = datasets.emplace_back();
      for (int i = 0; i < 3; ++i) {
        workload::Sample sample;
        const std::uint64_t length = 5 + random.next_below(30);
        for (std::uint64_t t = 0; t < length; ++t)
          sample.append(static_cast<std::int32_t>(random.next_below(vocabulary)), t > 3);
        dataset.samples.push_back(std::move(sample));
      }
      seeds.push_back(40 + task);
      adapters.push_back(std::make_unique<Adapter>(golden.backbone, shapes[task], golden.layers(), seeds.back()));
      for (float& number : adapters.back()->parameters()) number += static_cast<float>(random.next_normal() * 0.02);
    }
  }

  planner::Microbatch microbatch(std::vector<planner::TaskIndex> tasks, std::int32_t padding = 0) const {
    planner::Microbatch microbatch;
    for (const planner::TaskIndex task : tasks) {
      const std::vector<workload::Sample>& samples = datasets[static_cast<std::size_t>(task)].samples;
      for (std::size_t i = 0; i < samples.size(); ++i) {
        planner::Segment segment;
        segment.task = task;
        segment.sample = segment.index = static_cast<std::int32_t>(i);
        segment.end = static_cast<std::int32_t>(samples[i].tokens.size());
        segment.padding = padding;
        segment.scored = segment.end - 4;
        microbatch.segments.push_back(segment);
      }
    }
    return microbatch;
  }

  /// One pass; returns the losses.
  std::vector<TaskLoss> pass(const planner::Microbatch& microbatch) {
    const std::vector<double> scale(shapes.size(), 0.01);
    std::vector<TaskLoss> losses(shapes.size());
    run_whole(golden.model.forward(0, make_batch(microbatch, datasets), {}, adapters, seeds, scale, losses));
    run_whole(golden.model.backward(0, {}, adapters, seeds));
    return losses;
  }

  /// A microbatch in pieces, of all its samples at once: cut at the multiples of `chunk` tokens. Some have padding.
  std::vector<planner::Microbatch> chunks(const planner::Microbatch& whole, std::int32_t chunk) const {
    std::vector<planner::Microbatch> pieces;
    for (std::int32_t begin = 0;; begin += chunk) {
      planner::Microbatch piece;
      for (planner::Segment segment : whole.segments) {
        const std::int32_t end = segment.end;
        if (end <= begin) continue;
        segment.begin = begin;
        segment.end = std::min(end, begin + chunk);
        segment.padding = segment.index;
        piece.segments.push_back(segment);
      }
      if (piece.segments.empty()) return pieces;
      piece.id = static_cast<planner::MicrobatchId>(pieces.size());
      pieces.push_back(std::move(piece));
    }
  }

  /// Chunks forward in order and backward in reverse.
  std::vector<TaskLoss> pass_of_chunks(std::span<const planner::Microbatch> chunks) {
    const std::vector<double> scale(shapes.size(), 0.01);
    std::vector<TaskLoss> losses(shapes.size());
    for (const planner::Microbatch& chunk : chunks)
      run_whole(golden.model.forward(chunk.id, make_batch(chunk, datasets), {}, adapters, seeds, scale, losses));
    for (std::size_t c = chunks.size(); c-- > 0;) run_whole(golden.model.backward(chunks[c].id, {}, adapters, seeds));
    return losses;
  }

  std::vector<float> take_gradient(std::size_t task) {
    const std::span<float> gradients = adapters[task]->gradients();
    std::vector<float> taken(gradients.begin(), gradients.end());
    std::fill(gradients.begin(), gradients.end(), 0.0F);
    return taken;
  }

  GoldenCase golden;
  std::vector<costmodel::AdapterShape> shapes;
  std::vector<workload::Dataset> datasets;
  std::vector<std::uint64_t> seeds;
  std::vector<std::unique_ptr<Adapter>> adapters;
};

std::vector<costmodel::AdapterShape> mixed_shapes() {
  std::vector<costmodel::AdapterShape> shapes = {adapter_shape(4, 0, kAll),
                                                 adapter_shape(3, 0.3, {Module::q, Module::v, Module::down}),
                                                 adapter_shape(8, 0, {Module::k, Module::o, Module::up})};
  shapes[0].module_ranks[static_cast<std::size_t>(Module::k)] = 7;
  shapes[0].module_alphas[static_cast<std::size_t>(Module::up)] = 3;
  shapes[1].module_ranks[static_cast<std::size_t>(Module::v)] = 1;
  return shapes;
}

TEST(StageModel, BatchedTasksGetTheGradientsThatTheyGetAlone) {
  Tasks tasks(mixed_shapes());
  std::vector<std::vector<float>> alone;
  std::vector<double> losses;
  for (planner::TaskIndex task = 0; task < 3; ++task) {
    losses.push_back(tasks.pass(tasks.microbatch({task}))[static_cast<std::size_t>(task)].sum);
    alone.push_back(tasks.take_gradient(static_cast<std::size_t>(task)));
  }
  const std::vector<TaskLoss> together = tasks.pass(tasks.microbatch({0, 1, 2}));
  for (std::size_t task = 0; task < 3; ++task) {
    EXPECT_NEAR(together[task].sum, losses[task], 1e-6 * losses[task]);
    EXPECT_LT(testing::relative_difference(tasks.take_gradient(task), alone[task]), 1e-6) << "task " << task;
  }
}

TEST(StageModel, PaddingChangesNoGradient) {
  Tasks tasks(mixed_shapes());
  const double loss = tasks.pass(tasks.microbatch({0}))[0].sum;
  const std::vector<float> exact = tasks.take_gradient(0);
  EXPECT_NEAR(tasks.pass(tasks.microbatch({0}, 9))[0].sum, loss, 1e-6 * loss);
  EXPECT_LT(testing::relative_difference(tasks.take_gradient(0), exact), 1e-6);
}

class StageModelOf : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backbones, StageModelOf, ::testing::Values("llama", "qwen3"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(StageModelOf, ChunksGetTheLossesAndGradientsOfWholeSamples) {
  Tasks tasks(mixed_shapes(), GetParam());
  const planner::Microbatch microbatch = tasks.microbatch({0, 1, 2});
  const std::vector<TaskLoss> losses = tasks.pass(microbatch);
  std::vector<std::vector<float>> whole;
  for (std::size_t task = 0; task < 3; ++task) whole.push_back(tasks.take_gradient(task));
  for (const std::int32_t size : {1, 3, 8, 16}) {
    const std::vector<planner::Microbatch> chunks = tasks.chunks(microbatch, size);
    ASSERT_GT(chunks.size(), 1U);
    const std::vector<TaskLoss> in_chunks = tasks.pass_of_chunks(chunks);
    for (std::size_t task = 0; task < 3; ++task) {
      EXPECT_NEAR(in_chunks[task].sum, losses[task].sum, 1e-6 * losses[task].sum) << size;
      EXPECT_LT(testing::relative_difference(tasks.take_gradient(task), whole[task]), 2e-6) << task << " " << size;
    }
  }
  EXPECT_EQ(tasks.golden.model.live(), 0U);
}

TEST(StageModel, ATaskInOneChunkOfManyLearnsNothingFromTheOthers) {
  // Without an adapter on keys or values of the first layer, a later chunk gives back gradients that nobody reads.
  Tasks tasks({adapter_shape(4, 0, {Module::down}), adapter_shape(4, 0, {Module::k})});
  std::vector<std::vector<float>> alone;
  for (planner::TaskIndex task = 0; task < 2; ++task) {
    tasks.pass(tasks.microbatch({task}));
    alone.push_back(tasks.take_gradient(static_cast<std::size_t>(task)));
  }
  // The second task's samples are whole in the first microbatch; those of the first go on.
  std::vector<planner::Microbatch> chunks = tasks.chunks(tasks.microbatch({0}), 8);
  for (const planner::Segment& segment : tasks.microbatch({1}).segments) chunks[0].segments.push_back(segment);
  tasks.pass_of_chunks(chunks);
  for (std::size_t task = 0; task < 2; ++task)
    EXPECT_LT(testing::relative_difference(tasks.take_gradient(task), alone[task]), 2e-6) << task;
}

TEST(StageModel, ATaskWithoutNumbersLeavesTheOthersTheirs) {
  Tasks tasks(mixed_shapes());
  tasks.pass(tasks.microbatch({0, 1, 2}));
  const std::vector<float> first = tasks.take_gradient(0), third = tasks.take_gradient(2);
  tasks.take_gradient(1);
  for (float& number : tasks.adapters[1]->parameters()) number = std::numeric_limits<float>::quiet_NaN();
  const std::vector<TaskLoss> losses = tasks.pass(tasks.microbatch({0, 1, 2}));
  EXPECT_TRUE(std::isnan(losses[1].sum));
  EXPECT_EQ(tasks.take_gradient(0), first);
  EXPECT_EQ(tasks.take_gradient(2), third);
}

TEST(StageModel, GradientsAreTheSlopesOfTheLossWithDropoutToo) {
  Tasks tasks({adapter_shape(2, 0.4, kAll)});
  tasks.pass(tasks.microbatch({0}));
  const std::vector<float> gradient = tasks.take_gradient(0);
  const std::span<float> parameters = tasks.adapters[0]->parameters();
  // Along random directions, so that every number takes part and rounding does not drown the slope.
  RandomStream random(11);
  for (int trial = 0; trial < 4; ++trial) {
    std::vector<float> direction(parameters.size());
    double slope = 0;
    for (std::size_t i = 0; i < direction.size(); ++i) {
      direction[i] = static_cast<float>(random.next_normal());
      slope += static_cast<double>(direction[i]) * static_cast<double>(gradient[i]);
    }
    const float step = 2e-3F;
    const std::vector<float> before(parameters.begin(), parameters.end());
    const auto loss_at = [&](float distance) {
      for (std::size_t i = 0; i < direction.size(); ++i) parameters[i] = before[i] + distance * direction[i];
      const double loss = tasks.pass(tasks.microbatch({0}))[0].sum;
      tasks.take_gradient(0);
      return loss;
    };
    const double measured = (loss_at(step) - loss_at(-step)) / (2 * static_cast<double>(step));
    std::copy(before.begin(), before.end(), parameters.begin());
    EXPECT_NEAR(measured, slope, 0.02 * std::abs(slope) + 1e-4);
  }
}

TEST_P(StageModelOf, DoesTheWorkThatTheCostModelCharges) {
  for (const std::vector<costmodel::AdapterShape>& shapes :
       {mixed_shapes(), {adapter_shape(4, 0, {Module::gate})}, {adapter_shape(4, 0, {Module::q, Module::v})}}) {
    Tasks tasks(shapes, GetParam());
    std::vector<planner::TaskIndex> all;
    for (std::size_t t = 0; t < shapes.size(); ++t) all.push_back(static_cast<planner::TaskIndex>(t));
    const planner::Microbatch microbatch = tasks.microbatch(all);
    const costmodel::MicrobatchLoad load = planner::load_of(microbatch, shapes);
    const costmodel::StageShape stage{tasks.golden.backbone.layers, true, true};
    const std::vector<double> scale(shapes.size(), 0.01);
    std::vector<TaskLoss> losses(shapes.size());
    tasks.golden.probe.recording = true;
    for (const costmodel::Pass pass : {costmodel::Pass::forward, costmodel::Pass::backward}) {
      tasks.golden.probe.records.clear();
      if (pass == costmodel::Pass::forward) {
        run_whole(tasks.golden.model.forward(0, make_batch(microbatch, tasks.datasets), {}, tasks.adapters, tasks.seeds,
                                             scale, losses));
      } else {
        run_whole(tasks.golden.model.backward(0, {}, tasks.adapters, tasks.seeds));
      }
      // Attention is charged by sequence and done for all rows at once.
      using Key = std::tuple<costmodel::Operator, costmodel::Pass, costmodel::OperatorShape, std::int64_t>;
      std::map<Key, double> charged, done;
      double attended_charged = 0, attended_done = 0;
      for (const costmodel::OperatorCall& call :
           costmodel::stage_operators(tasks.golden.backbone, stage, load, pass, costmodel::cpu_storage())) {
        if (call.op == costmodel::Operator::dispatch) continue;
        if (call.op == costmodel::Operator::attention)
          attended_charged += call.count * static_cast<double>(call.sequences * call.tokens);
        else
          charged[{call.op, call.pass, call.shape, call.tokens}] += call.count;
      }
      for (const Probe::Record& record : tasks.golden.probe.records) {
        if (record.call.op == costmodel::Operator::attention)
          attended_done += static_cast<double>(record.call.tokens);
        else
          done[{record.call.op, record.call.pass, record.call.shape, record.call.tokens}] += 1;
      }
      EXPECT_EQ(charged, done);
      EXPECT_EQ(attended_charged, attended_done);
    }
  }
}

TEST_P(StageModelOf, HoldsWhatTheMemoryModelSays) {
  using costmodel::RecomputeKind;
  for (const costmodel::Recompute& recompute : {costmodel::Recompute{},
                                                {RecomputeKind::selective, 1},
                                                {RecomputeKind::selective, 2},
                                                {RecomputeKind::full, 1},
                                                {RecomputeKind::full, 2}})
    for (const double dropout : {0.0, 0.1}) {
      const std::string what =
          fmt::format("{} of {} layers, dropout {}", name(recompute.kind), recompute.layers, dropout);
      for (const std::vector<planner::TaskIndex>& present :
           std::vector<std::vector<planner::TaskIndex>>{{0, 1, 2}, {0}, {1}, {2}}) {
        std::vector<costmodel::AdapterShape> shapes = mixed_shapes();
        for (costmodel::AdapterShape& shape : shapes) shape.dropout = dropout;
        Tasks tasks(shapes, GetParam(), recompute);
        const planner::Microbatch microbatch = tasks.microbatch(present, 40);
        const costmodel::MicrobatchLoad load = planner::load_of(microbatch, tasks.shapes);
        const costmodel::BackboneShape& backbone = tasks.golden.backbone;
        costmodel::StageShape stage{backbone.layers, true, true};
        stage.recompute = recompute;
        const std::vector<double> scale(3, 0.01);
        std::vector<TaskLoss> losses(3);
        BufferPool& pool = tasks.golden.pool;
        run_whole(tasks.golden.model.forward(0, make_batch(microbatch, tasks.datasets), {}, tasks.adapters, tasks.seeds,
                                             scale, losses));
        // Buffers begin on cache lines.
        const Bytes rounding = 64 * 30 * (stage.layers + 1);
        const Bytes stash = costmodel::stash_bytes(backbone, stage, load, costmodel::cpu_storage());
        EXPECT_GE(pool.in_use(), stash) << what;
        EXPECT_LE(pool.in_use(), stash + rounding) << what;
        const Bytes forward = stash + costmodel::workspace_bytes(backbone, stage, load, costmodel::Pass::forward,
                                                                 costmodel::cpu_storage());
        EXPECT_GE(pool.peak(), forward) << what;
        EXPECT_LE(pool.peak(), forward + rounding) << what;
        run_whole(tasks.golden.model.backward(0, {}, tasks.adapters, tasks.seeds));
        const Bytes whole =
            std::max(forward, stash + costmodel::workspace_bytes(backbone, stage, load, costmodel::Pass::backward,
                                                                 costmodel::cpu_storage()));
        EXPECT_EQ(pool.in_use(), 0);
        EXPECT_GE(pool.peak(), whole) << what;
        EXPECT_LE(pool.peak(), whole + rounding) << what;
      }
    }
}

}  // namespace
}  // namespace braid::exec
