#include "cuda_on_cpu_device.h"
#include "exec/golden.h"
#include "exec/tasks_laws.h"
#include "exec/training.h"

/// Whole models by the kernels of GPUs: thread by thread on this processor, and on a GPU where there is one.
namespace braid::exec {
namespace {

using kernels::Arithmetic;

/// Of short samples, as a GPU's thread takes the processor a thousand times as long.
TrainerStudy short_study(const char* backbone) {
  TrainerStudy study(1e-2, backbone);
  std::vector<std::vector<workload::SampleSize>> sizes;
  for (std::size_t task = 0; task < 4; ++task) {
    workload::Task& spec = study.workload.tasks[task];
    spec.global_batch_size = 2, spec.steps = 2;
    spec.max_length = 20;
    study.datasets[task] = TrainerStudy::counting(5 + 3 * static_cast<std::int64_t>(task),
                                                  std::min<std::int64_t>(150, study.workload.backbone.vocabulary));
    sizes.push_back(workload::sample_sizes(study.datasets[task]));
  }
  study.samples.emplace(study.workload.tasks, std::move(sizes));
  return study;
}

planner::FixedPlan together(std::int64_t tp, std::int64_t pp, std::int64_t replicas = 1) {
  planner::FixedPlan fixed = two_layers_on(tp, pp, replicas);
  fixed.htasks = {{0, 1, 2, 3}};
  fixed.buckets = {{0}};
  fixed.batching.microbatches = 1;
  fixed.batching.padding = planner::Padding::none;
  return fixed;
}

/// One device of CUDA's kernels; null where the machine has no GPU, unless BRAID_GPU says that it has.
std::unique_ptr<kernels::Device> device_of(const std::string& where, kernels::Arithmetic arithmetic) {
  if (where == "cpu") return kernels::make_cuda_on_cpu_device(arithmetic);
  try {
    return kernels::make_cuda_device(0, arithmetic);
  } catch (const std::runtime_error&) {
    if (std::getenv("BRAID_GPU")) throw;
    return nullptr;
  }
}

class Cuda : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  void SetUp() override {
    if (!device_of(std::get<0>(GetParam()), Arithmetic::f32)) GTEST_SKIP() << "no GPU here";
  }
};
std::string name_of(const ::testing::TestParamInfo<std::tuple<const char*, const char*>>& tested) {
  return std::string(std::get<1>(tested.param)) + "_on_" + std::get<0>(tested.param);
}

/// In f32 but for the order of sums; in bf16 and tf32 but for what they round.
class CudaTraining : public Cuda {};
TEST_P(CudaTraining, LearnsWhatTheProcessorLearns) {
  const auto& [where, backbone] = GetParam();
  const TrainerStudy study = short_study(backbone);
  const Trained cpu = train_on(study, together(1, 1));
  const auto on = [place = where](Arithmetic arithmetic) { return [=] { return device_of(place, arithmetic); }; };
  expect_near(train_on(study, together(1, 1), on(Arithmetic::f32)), cpu, 1e-5, "f32");
  const std::pair<Arithmetic, double> rounded[] = {{Arithmetic::bf16, 1e-2}, {Arithmetic::tf32, 2e-3}};
  for (const auto& [arithmetic, tolerance] : rounded) {
    const Trained near = train_on(study, together(1, 1), on(arithmetic));
    for (std::size_t task = 0; task < 4; ++task)
      for (std::size_t i = 0; i < cpu.steps[task].size(); ++i)
        EXPECT_NEAR(near.steps[task][i].loss / cpu.steps[task][i].loss, 1, tolerance) << task << " " << i;
    EXPECT_GT(std::abs(near.steps[0][0].loss / cpu.steps[0][0].loss - 1), 1e-7) << "nothing was rounded";
  }
}

INSTANTIATE_TEST_SUITE_P(Backbones, CudaTraining,
                         ::testing::Combine(::testing::Values("cpu", "gpu"),
                                            ::testing::Values("llama", "qwen3", "opt")),
                         name_of);

/// The second kernels of each operator, once they are chosen: losses are near, and others, as they round elsewhere.
class CudaSecondKernels : public Cuda {};
TEST_P(CudaSecondKernels, LearnWhatTheProcessorLearns) {
  const auto& [where, backbone] = GetParam();
  const TrainerStudy study = short_study(backbone);
  const Trained cpu = train_on(study, together(1, 1));
  const auto on = [place = where](std::vector<costmodel::KernelChoice> choices) {
    return [=] {
      std::unique_ptr<kernels::Device> device = device_of(place, Arithmetic::bf16);
      device->choose_kernels(choices);
      return device;
    };
  };
  const Trained first = train_on(study, together(1, 1), on({}));
  for (const costmodel::Operator op : {costmodel::Operator::linear, costmodel::Operator::attention}) {
    if (!device_of(where, Arithmetic::bf16)->has_second_kernel(op)) continue;
    const Trained second = train_on(study, together(1, 1), on(costmodel::all_of(op)));
    std::size_t others = 0;
    for (std::size_t task = 0; task < 4; ++task) {
      for (std::size_t i = 0; i < cpu.steps[task].size(); ++i) {
        EXPECT_NEAR(second.steps[task][i].loss / cpu.steps[task][i].loss, 1, 1e-2) << name(op) << task << " " << i;
        if (second.steps[task][i].loss != first.steps[task][i].loss) ++others;
      }
    }
    EXPECT_GT(others, 0U) << name(op) << ": nothing was chosen";
  }
}
INSTANTIATE_TEST_SUITE_P(Backbones, CudaSecondKernels,
                         ::testing::Combine(::testing::Values("cpu", "gpu"), ::testing::Values("llama")), name_of);

/// Layers that are launched as graphs compute the same numbers, to the bit: by second kernels on one rank, and by the
/// first on shards, whose passes stop for sums.
class CudaGraphs : public Cuda {};
TEST_P(CudaGraphs, LearnTheSame) {
  const auto& [where, backbone] = GetParam();
  const bool on_cpu = where == std::string("cpu");
  const TrainerStudy study = short_study(backbone);
  const auto on = [place = where](std::vector<costmodel::KernelChoice> choices) {
    return [=]() mutable {
      std::unique_ptr<kernels::Device> device = device_of(place, Arithmetic::bf16);
      std::erase_if(choices, [&](const costmodel::KernelChoice& one) { return !device->has_second_kernel(one.op); });
      device->choose_kernels(choices);
      return device;
    };
  };
  for (const auto& [tp, second] : {std::pair(1, true), {2, false}}) {
    if (tp > 1 && !on_cpu) continue;  // there may be one GPU
    std::vector<costmodel::KernelChoice> choices;
    const auto add = [&](costmodel::Operator op) {
      for (const costmodel::KernelChoice& choice : costmodel::all_of(op)) choices.push_back(choice);
    };
    if (second) add(costmodel::Operator::linear), add(costmodel::Operator::attention);
    const Trained without = train_on(study, together(tp, 1), on(choices));
    add(costmodel::Operator::launch);
    const std::int64_t held = kernels::calls_in_graphs();
    const Trained with = train_on(study, together(tp, 1), on(choices));
    EXPECT_GT(kernels::calls_in_graphs() - held, on_cpu ? 100 : -1);
    for (std::size_t task = 0; task < 4; ++task) {
      ASSERT_EQ(with.steps[task].size(), without.steps[task].size());
      for (std::size_t i = 0; i < with.steps[task].size(); ++i)
        EXPECT_EQ(with.steps[task][i].loss, without.steps[task][i].loss) << tp << " " << task << " " << i;
      EXPECT_EQ(with.adapters[task], without.adapters[task]) << tp << " " << task;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Backbones, CudaGraphs,
                         ::testing::Combine(::testing::Values("cpu", "gpu"), ::testing::Values("llama")), name_of);

/// What the device has no second kernel for is not chosen, whatever a profile says.
TEST(CudaKernels, OfOtherMachinesAreRefused) {
  for (const auto& device : {kernels::make_cpu_device(), kernels::make_cuda_on_cpu_device(Arithmetic::f32)}) {
    EXPECT_NO_THROW(device->choose_kernels({}));
    EXPECT_THROW(device->choose_kernels(costmodel::all_of(costmodel::Operator::attention)), Error);
  }
}

/// Backbones of every family and adapters of every method: what transformers and PEFT compute of them.
class CudaGolden : public Cuda {};
TEST_P(CudaGolden, LogitsEqualPeft) {
  const auto& [where, name] = GetParam();
  const std::unique_ptr<kernels::Device> device = device_of(where, Arithmetic::f32);
  testing::GoldenCase golden(name, {}, *device);
  const auto of = [&](const char* tensor) { return golden.expected.find(tensor)->shape; };
  const workload::Dataset data =
      testing::dataset_of(golden.expected.read_i64("input_ids", of("input_ids")),
                          golden.expected.read_i64("labels", of("labels")), of("input_ids")[0]);
  const std::vector<float> logits =
      golden.model.logits(make_batch(testing::microbatch_of(data), {&data, 1}), golden.adapters, golden.seeds);
  EXPECT_LT(testing::relative_difference(logits, golden.expected.read_f32("adapter_logits", of("adapter_logits"))),
            2e-5);
}
INSTANTIATE_TEST_SUITE_P(Models, CudaGolden,
                         ::testing::Combine(::testing::Values("cpu", "gpu"),
                                            ::testing::Values("llama", "llama3_rope", "mistral", "qwen25", "qwen3",
                                                              "opt", "gpt2", "dora", "vera", "ia3", "prefix", "shira",
                                                              "bottleneck")),
                         name_of);

/// Of activations in bf16 beside statistics in f32.
TEST(CudaOnCpuMemory, APassTakesTheBytesThatArePredicted) {
  for (const auto& [backbone, recompute, joins] : {std::tuple("llama", kRecomputes.front(), false),
                                                   {"opt", kRecomputes.front(), false},
                                                   {"llama", kRecomputes.back(), false},
                                                   {"llama", kRecomputes.front(), true}}) {
    const std::unique_ptr<kernels::Device> device = kernels::make_cuda_on_cpu_device(Arithmetic::bf16);
    if (joins) device->choose_kernels(costmodel::all_of(costmodel::Operator::linear));
    Tasks tasks({adapter_shape(4, 0, kAll), adapter_shape(8, 0.1, {Module::q, Module::down})}, backbone, recompute,
                *device);
    expect_known_memory(tasks, tasks.microbatch({0, 1}, 24), recompute, backbone,
                        costmodel::cuda_storage(costmodel::DataType::f32));
  }
}

TEST(CudaOnCpuRanks, ShardsAndStagesLearnWhatOneRankLearns) {
  const TrainerStudy study = short_study("llama");
  const Trained cpu = train_on(study, together(1, 1));
  for (const auto& [tp, pp] : {std::pair{2, 1}, {1, 2}})
    expect_near(train_on(study, together(tp, pp), [] { return kernels::make_cuda_on_cpu_device(Arithmetic::f32); }),
                cpu, 1e-5, fmt::format("tp {}, pp {}", tp, pp));
}

TEST(CudaOnCpuRanks, WeightsInSharesLearnWhatOneRankLearns) {
  const TrainerStudy study = short_study("llama");
  const Trained cpu = train_on(study, together(1, 1));
  planner::FixedPlan fixed = together(1, 1, 2);
  fixed.schedule.pipeline = PipelineTemplate::one_by_one;
  fixed.shards_weights = true;
  expect_near(train_on(study, fixed, [] { return kernels::make_cuda_on_cpu_device(Arithmetic::f32); }), cpu, 1e-5,
              "two shares");
}

}  // namespace
}  // namespace braid::exec
