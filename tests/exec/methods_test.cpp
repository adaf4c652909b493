#include "exec/adapters/adapter_kind.h"
#include "exec/slopes.h"
#include "tasks_laws.h"

/// Adapters of every method.
namespace braid::exec {
namespace {

using costmodel::AdapterMethod;
using costmodel::AdapterShape;

/// A task of each method, DoRA and VeRA without and with dropout, on the modules that the backbone has.
std::vector<AdapterShape> every_method(const std::string& backbone) {
  const bool fused = backbone == "gpt2", gated = backbone != "gpt2" && backbone != "opt";
  std::vector<AdapterShape> shapes;
  const auto add = [&](AdapterMethod method, std::int64_t rank, double dropout, std::initializer_list<Module> modules) {
    AdapterShape& shape = shapes.emplace_back(adapter_shape(rank, dropout, {}));
    shape.method = method;
    for (Module module : modules) {
      if (module == Module::gate && !gated) continue;
      if (fused && module <= Module::v) module = Module::qkv;
      shape.targets[static_cast<std::size_t>(module)] = true;
    }
  };
  add(AdapterMethod::lora, 4, 0.1, kAll);
  add(AdapterMethod::dora, 3, 0, kAll);
  add(AdapterMethod::dora, 3, 0.2, {Module::q, Module::v, Module::o, Module::up});
  add(AdapterMethod::vera, 5, 0, kAll);
  add(AdapterMethod::vera, 5, 0.2, {Module::k, Module::down});
  add(AdapterMethod::ia3, 0, 0, {Module::k, Module::v, Module::o, Module::up, Module::down});
  shapes.back().alpha = 0;
  shapes.back().scales_inputs = true;
  add(AdapterMethod::prefix_tuning, 3, 0, {});
  add(AdapterMethod::bottleneck, 6, 0, {Module::o, Module::down});
  add(AdapterMethod::diff_pruning, 1, 0, kAll);
  return shapes;
}

std::vector<planner::TaskIndex> all_of(const Tasks& tasks) {
  std::vector<planner::TaskIndex> all;
  for (std::size_t t = 0; t < tasks.shapes.size(); ++t) all.push_back(static_cast<planner::TaskIndex>(t));
  return all;
}

std::string described(const AdapterShape& shape) {
  return fmt::format("{} with dropout {}", name(shape.method), shape.dropout);
}

class Methods : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backbones, Methods, ::testing::Values("llama", "qwen25", "qwen3", "gpt2", "opt"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(Methods, TasksOfAllMethodsInOneMicrobatchGetWhatEachGetsAlone) {
  Tasks tasks(every_method(GetParam()), GetParam());
  std::vector<std::vector<float>> alone;
  std::vector<double> losses;
  for (const planner::TaskIndex task : all_of(tasks)) {
    losses.push_back(tasks.pass(tasks.microbatch({task}))[static_cast<std::size_t>(task)]);
    alone.push_back(tasks.take_gradient(static_cast<std::size_t>(task)));
  }
  const std::vector<double> together = tasks.pass(tasks.microbatch(all_of(tasks), 5));
  for (std::size_t task = 0; task < losses.size(); ++task) {
    EXPECT_NEAR(together[task], losses[task], 1e-6 * losses[task]);
    EXPECT_LT(testing::relative_difference(tasks.take_gradient(task), alone[task]), 5e-6)
        << described(tasks.shapes[task]);
  }
}

TEST_P(Methods, ChunksGetTheLossesAndGradientsOfWholeSamples) {
  Tasks tasks(every_method(GetParam()), GetParam());
  const planner::Microbatch microbatch = tasks.microbatch(all_of(tasks));
  const std::vector<double> losses = tasks.pass(microbatch);
  std::vector<std::vector<float>> whole;
  for (std::size_t task = 0; task < losses.size(); ++task) whole.push_back(tasks.take_gradient(task));
  for (const std::int32_t size : {3, 16}) {
    const std::vector<double> in_chunks = tasks.pass_of_chunks(tasks.chunks(microbatch, size));
    for (std::size_t task = 0; task < losses.size(); ++task) {
      EXPECT_NEAR(in_chunks[task], losses[task], 1e-6 * losses[task]) << size;
      EXPECT_LT(testing::relative_difference(tasks.take_gradient(task), whole[task]), 5e-6)
          << described(tasks.shapes[task]) << " " << size;
    }
  }
}

/// DoRA's norms count as numbers: they stay what they were while the parameters are moved.
TEST_P(Methods, GradientsAreTheSlopesOfTheLoss) {
  if (std::string(GetParam()) == "opt") GTEST_SKIP() << "steps cross ReLU's bends";
  Tasks tasks(every_method(GetParam()), GetParam());
  for (const planner::TaskIndex task : all_of(tasks)) {
    const auto place = static_cast<std::size_t>(task);
    tasks.pass(tasks.microbatch({task}));
    const std::vector<float> gradient = tasks.take_gradient(place);
    const std::span<float> parameters = tasks.adapters[place]->parameters().span();
    const auto loss = [&] {
      const double found = tasks.pass(tasks.microbatch({task}))[place];
      tasks.take_gradient(place);
      return found;
    };
    expect_slopes(parameters, gradient, loss, 2e-4, described(tasks.shapes[place]));
  }
}

TEST_P(Methods, DoTheWorkThatTheCostModelCharges) {
  for (const AdapterShape& shape : every_method(GetParam())) {
    Tasks tasks({shape}, GetParam());
    SCOPED_TRACE(described(shape));
    expect_charged_work(tasks);
  }
  Tasks all(every_method(GetParam()), GetParam());
  expect_charged_work(all);
}

TEST_P(Methods, HoldWhatTheMemoryModelSays) {
  for (const costmodel::Recompute& recompute : kRecomputes) {
    for (const AdapterShape& shape : every_method(GetParam())) {
      Tasks tasks({shape}, GetParam(), recompute);
      expect_known_memory(tasks, tasks.microbatch({0}, 40), recompute, described(shape));
    }
    Tasks all(every_method(GetParam()), GetParam(), recompute);
    expect_known_memory(all, all.microbatch(all_of(all), 40), recompute, "all methods");
  }
}

/// The closed form: a fresh adapter changes nothing, but for a prefix, which is drawn.
TEST_P(Methods, AFreshAdapterLeavesTheBackboneAsItIs) {
  Tasks tasks(every_method(GetParam()), GetParam());
  double bare = 0;
  for (const planner::TaskIndex task : all_of(tasks)) {
    const auto place = static_cast<std::size_t>(task);
    const AdapterShape& shape = tasks.shapes[place];
    if (shape.method == AdapterMethod::prefix_tuning || shape.method == AdapterMethod::bottleneck) continue;
    tasks.datasets[place] = tasks.datasets[0];
    tasks.adapters[place] = std::make_unique<Adapter>(tasks.golden.backbone, shape, tasks.golden.layers(), 5);
    tasks.golden.model.begin(*tasks.adapters[place]);
    const double loss = tasks.pass(tasks.microbatch({task}))[place];
    if (task == 0) bare = loss;
    EXPECT_NEAR(loss, bare, 2e-6 * bare) << described(shape);
  }
}

}  // namespace
}  // namespace braid::exec
