#include "exec/executable.h"
#include "exec/training.h"

/// Adapters of every method on every kind of deployment.
namespace braid::exec {
namespace {

using costmodel::AdapterMethod;
using costmodel::AdapterShape;
using costmodel::Module;

AdapterShape method(AdapterMethod kind, std::int64_t rank, double dropout, std::initializer_list<Module> modules) {
  AdapterShape shape;
  shape.method = kind;
  shape.rank = rank;
  shape.alpha = 2.0 * static_cast<double>(rank);
  shape.dropout = dropout;
  for (const Module module : modules) shape.targets[static_cast<std::size_t>(module)] = true;
  return shape;
}

/// Four tasks of these adapters.
struct MethodStudy : TrainerStudy {
  explicit MethodStudy(const std::vector<AdapterShape>& adapters) {
    for (std::size_t task = 0; task < adapters.size(); ++task) {
      workload.tasks[task].adapter = adapters[task];
      workload.tasks[task].optimizer.lr = 3e-3;
    }
  }
};

std::vector<AdapterShape> some_methods() {
  AdapterShape scaled = method(AdapterMethod::ia3, 0, 0, {Module::k, Module::v, Module::o, Module::up, Module::down});
  scaled.scales_inputs = true;
  return {method(AdapterMethod::dora, 4, 0.1, {Module::q, Module::v, Module::gate, Module::up}),
          method(AdapterMethod::vera, 6, 0.1, {Module::q, Module::k, Module::o, Module::up, Module::down}), scaled,
          method(AdapterMethod::bottleneck, 8, 0, {Module::o, Module::down})};
}

std::vector<AdapterShape> other_methods() {
  return {method(AdapterMethod::prefix_tuning, 4, 0, {}),
          method(AdapterMethod::diff_pruning, 2, 0, {Module::q, Module::v, Module::o, Module::gate, Module::down}),
          method(AdapterMethod::lora, 4, 0.1, {Module::q, Module::o, Module::down}),
          method(AdapterMethod::dora, 4, 0, {Module::k, Module::up})};
}

void expect_alike_everywhere(const MethodStudy& study) {
  const Trained alone = train_on(study, two_layers_on(1, 1, 1));
  for (const auto& [tp, pp, replicas] : std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>{
           {2, 1, 1}, {4, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 2, 1}, {2, 1, 2}})
    expect_near(train_on(study, two_layers_on(tp, pp, replicas)), alone, 1e-5,
                fmt::format("tp {}, pp {}, {} replicas", tp, pp, replicas));
  planner::FixedPlan shared = two_layers_on(2, 1, 1);
  shared.htasks = {{0, 1, 2, 3}};
  shared.buckets = {{0}};
  shared.deployment[0].recompute = {{costmodel::RecomputeKind::full, 1}};
  expect_near(train_on(study, shared), alone, 1e-5, "one hTask of all, recomputed");
  expect_near(train_on(study, two_layers_on(1, 1, 1), kernels::make_reference_device), alone, 1e-5,
              "on the reference device");
}

TEST(MethodDeployments, EveryMethodLearnsOnEveryDeploymentWhatItLearnsOnOneRank) {
  expect_alike_everywhere(MethodStudy(some_methods()));
}

TEST(MethodDeployments, TheOthersToo) {
  expect_alike_everywhere(MethodStudy(other_methods()));
}

/// Of modules whose inputs are split the norms are sums over the shards.
TEST(MethodDeployments, DoraLearnsOnSplitRows) {
  const std::initializer_list<Module> all = {Module::q,    Module::k,  Module::v,   Module::o,
                                             Module::gate, Module::up, Module::down};
  expect_alike_everywhere(
      MethodStudy({method(AdapterMethod::dora, 4, 0.1, all), method(AdapterMethod::dora, 3, 0, all),
                   method(AdapterMethod::dora, 4, 0, {Module::o, Module::q}), method(AdapterMethod::lora, 4, 0, all)}));
}

TEST(MethodDeployments, NothingHurries) {
  for (const auto& adapters : {some_methods(), other_methods()}) {
    const MethodStudy study(adapters);
    for (const auto& [tp, pp, replicas] :
         std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>{{1, 1, 1}, {2, 2, 1}, {1, 1, 2}})
      expect_nothing_hurries(study, two_layers_on(tp, pp, replicas),
                             fmt::format("tp {}, pp {}, {} replicas", tp, pp, replicas));
  }
}

TEST(MethodDeployments, LoraPlusLetsBLearnFaster) {
  MethodStudy plain(other_methods()), faster(other_methods());
  for (workload::Task& task : faster.workload.tasks) task.optimizer.lora_plus_ratio = 4;
  const Trained a = train_on(plain, two_layers_on(1, 1, 1)), b = train_on(faster, two_layers_on(1, 1, 1));
  // The first step of AdamW goes as far as the learning rate says, whatever the gradient: B, which begins at 0, is four
  // times as far, and what it makes of the loss at the second step differs.
  for (const std::size_t task : {std::size_t{2}, std::size_t{3}}) {
    EXPECT_EQ(a.steps[task][0].loss, b.steps[task][0].loss);
    EXPECT_NE(a.steps[task][1].loss, b.steps[task][1].loss);
  }
  EXPECT_EQ(a.adapters[1], b.adapters[1]) << "without a B nothing changes";
}

}  // namespace
}  // namespace braid::exec
