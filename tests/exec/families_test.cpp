#include "exec/training.h"

/// Families whose layers are unlike Llama's, on every kind of deployment.
namespace braid::exec {
namespace {

/// The four tasks on a golden backbone of two layers and six heads, with adapters beside every linear layer or a few,
/// named as the family does.
struct FamilyStudy : TrainerStudy {
  explicit FamilyStudy(const char* name) : TrainerStudy(1e-2, name) {
    using costmodel::Module;
    const bool fused = workload.backbone.architecture == costmodel::Architecture::gpt2;
    const auto targets = [](std::initializer_list<Module> modules) {
      std::array<bool, costmodel::kModuleCount> chosen{};
      for (const Module module : modules) chosen[static_cast<std::size_t>(module)] = true;
      return chosen;
    };
    const auto all = fused ? targets({Module::qkv, Module::o, Module::up, Module::down})
                           : targets({Module::q, Module::k, Module::v, Module::o, Module::up, Module::down});
    workload.tasks[0].adapter.targets = fused ? targets({Module::qkv}) : targets({Module::q, Module::v});
    workload.tasks[1].adapter.targets = targets({Module::o, Module::down});
    workload.tasks[2].adapter.targets = workload.tasks[3].adapter.targets = all;
  }
};

class Families : public ::testing::TestWithParam<const char*> {};

TEST_P(Families, EveryDeploymentLearnsWhatOneRankLearns) {
  const FamilyStudy study(GetParam());
  const Trained alone = train_on(study, two_layers_on(1, 1, 1));
  for (const auto& [tp, pp, replicas] : std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>{
           {2, 1, 1}, {3, 1, 1}, {6, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 2, 1}})
    expect_near(train_on(study, two_layers_on(tp, pp, replicas)), alone, 1e-5,
                fmt::format("{}: tp {}, pp {}, {} replicas", GetParam(), tp, pp, replicas));
}

TEST_P(Families, RecomputedLayersAndSharedMicrobatchesLearnTheSame) {
  const FamilyStudy study(GetParam());
  const Trained alone = train_on(study, two_layers_on(1, 1, 1));
  for (const costmodel::RecomputeKind kind : {costmodel::RecomputeKind::selective, costmodel::RecomputeKind::full}) {
    planner::FixedPlan fixed = two_layers_on(2, 1, 1);
    fixed.htasks = {{0, 1, 2, 3}};
    fixed.buckets = {{0}};
    fixed.batching.chunk_size = 16;
    fixed.deployment[0].recompute = {{kind, 2}};
    expect_near(train_on(study, fixed), alone, 1e-5, fmt::format("{}: {}", GetParam(), name(kind)));
  }
}

TEST_P(Families, TheReferenceDeviceLearnsTheSame) {
  const FamilyStudy study(GetParam());
  expect_near(train_on(study, two_layers_on(1, 1, 1), kernels::make_reference_device),
              train_on(study, two_layers_on(1, 1, 1)), 1e-5, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Golden, Families, ::testing::Values("gpt2", "opt"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace braid::exec
