#include "exec/weight_shares.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "exec/example/random_weights.h"
#include "exec/executable.h"
#include "exec/golden.h"
#include "exec/ranks/thread_ranks.h"
#include "exec/training.h"

namespace braid::exec {
namespace {

using costmodel::DataType;

/// Of one number after another.
std::vector<float> numbers(std::int64_t count, float first) {
  std::vector<float> all(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::sin(first + 0.37F * static_cast<float>(i));
  return all;
}

/// A product computes as another does whose memory it took, on every device and of every type of weights.
TEST(FrozenLinear, ComputesAsTheOneWhoseMemoryItTook) {
  for (kernels::Device* device : {&cpu_device(), &reference_device()}) {
    for (const auto type :
         {kernels::WeightType::f32, kernels::WeightType::bf16, kernels::WeightType::int8, kernels::WeightType::nf4}) {
      constexpr std::int64_t kIn = 96, kOut = 80, kRows = 13;
      const auto pack = [&](float first, bool backward) {
        const std::vector<float> weight = numbers(kIn * kOut, first), bias = numbers(kOut, first + 1);
        return device->kernels().pack_linear({weight.data(), kOut, kIn}, bias, backward, type);
      };
      const auto given = pack(1, true), taking = pack(2, true), forward_alone = pack(1, false);
      for (const auto* from : {&given, &forward_alone}) {
        const auto theirs = (*from)->storage(), mine = taking->storage();
        ASSERT_LE(theirs.size(), mine.size());
        for (std::size_t i = 0; i < theirs.size(); ++i) {
          ASSERT_EQ(theirs[i].size(), mine[i].size());
          std::ranges::copy(theirs[i], mine[i].begin());
        }
        std::vector<float> x = numbers(kRows * kOut, 3), a(x.size()), b(x.size());
        const auto compute = [&](const kernels::FrozenLinear& linear, bool backward, std::vector<float>& y) {
          y.assign(static_cast<std::size_t>(kRows * (backward ? kIn : kOut)), 0);
          std::vector<float> input = numbers(kRows * (backward ? kOut : kIn), 3);
          const kernels::ConstMatrix in(input.data(), kRows, backward ? kOut : kIn);
          const kernels::Matrix out(y.data(), kRows, backward ? kIn : kOut);
          backward ? linear.backward(in, out) : linear.forward(in, out);
        };
        compute(**from, false, a), compute(*taking, false, b);
        EXPECT_EQ(a, b);
        if (from == &forward_alone) continue;
        compute(**from, true, a), compute(*taking, true, b);
        EXPECT_EQ(a, b);
      }
    }
  }
}

/// Whatever the order in which layers are asked for, and on however many ranks.
RC_GTEST_PROP(WeightShares, GiveEveryLayerBackAsItWas, ()) {
  costmodel::BackboneShape shape = testing::GoldenCase("llama").backbone;
  shape.layers = *rc::gen::inRange(1, 5);
  const auto type = *rc::gen::element(DataType::f32, DataType::bf16, DataType::nf4);
  const int ranks = *rc::gen::inRange(1, 5);
  const auto order = *rc::gen::container<std::vector<std::size_t>>(
      12, rc::gen::inRange<std::size_t>(0, static_cast<std::size_t>(shape.layers)));
  // By product, part by part.
  const auto parts_of = [](const LayerWeights& layer) {
    std::vector<std::vector<std::vector<std::byte>>> all;
    for (const auto& product : layer.products) {
      all.emplace_back();
      if (!product) continue;
      for (const std::span<std::byte> part : product->storage()) all.back().emplace_back(part.begin(), part.end());
    }
    return all;
  };
  std::vector<std::vector<std::vector<std::vector<std::byte>>>> expected;
  for (const LayerWeights& layer : random_weights(shape, cpu_device().kernels(), type).layers)
    expected.push_back(parts_of(layer));
  run_on_threads(ranks, [&](Communicator& communicator) {
    StageWeights weights = random_weights(shape, cpu_device().kernels(), type);
    WeightShares shares(communicator, cpu_device());
    for (LayerWeights& layer : weights.layers) shares.keep(layer);
    shares.publish();
    for (const std::size_t layer : order) {
      shares.gather(layer, weights.layers);
      const auto found = parts_of(weights.layers[layer]);
      for (std::size_t group = 0; group < found.size(); ++group) {
        const auto& given = expected[layer][group];
        // The first layer's qkv is without what a backward pass reads; another layer's may be there.
        RC_ASSERT(!given.empty() && given.size() <= found[group].size());
        for (std::size_t part = 0; part < given.size(); ++part) RC_ASSERT(found[group][part] == given[part]);
      }
      for (std::size_t other = 0; other < weights.layers.size(); ++other)
        if (other != layer) RC_ASSERT(!weights.layers[other].products.back());
    }
    communicator.barrier();
  });
}

/// Replicas whose weights are in shares learn what one rank learns, to the order of sums; some have fewer microbatches
/// than others, or none.
TEST(WeightShares, LearnWhatOneRankLearns) {
  for (const bool pairs : {false, true}) {
    TrainerStudy study;
    if (pairs) {
      study.workload.tasks[0].objective.kind = workload::ObjectiveKind::dpo;
      for (workload::Sample& sample : study.datasets[0].samples) {
        workload::Sample other = sample;
        std::ranges::reverse(other.tokens), std::ranges::reverse(other.labels);
        sample = workload::pair_of(sample, other);
      }
      std::vector<std::vector<workload::SampleSize>> sizes;
      for (const workload::Dataset& dataset : study.datasets) sizes.push_back(workload::sample_sizes(dataset));
      study.samples.emplace(study.workload.tasks, std::move(sizes));
    }
    const Trained one = train_on(study, apart(PipelineTemplate::one_by_one, 1));
    for (const std::int64_t replicas : {2, 3, 4}) {
      planner::FixedPlan fixed = two_layers_on(1, 1, replicas);
      fixed.schedule.pipeline = PipelineTemplate::one_by_one;
      fixed.shards_weights = true;
      expect_near(train_on(study, fixed), one, 1e-5, fmt::format("{} replicas", replicas));
    }
  }
}

TEST(WeightShares, OfReplicasOfSeveralRanksAreRefused) {
  planner::FixedPlan fixed = two_layers_on(1, 2, 2);
  fixed.shards_weights = true;
  expect_error([&] { check_executable(fixed); }, "shards weights over replicas of several ranks",
               "plan with --policy megatron-fsdp");
}

}  // namespace
}  // namespace braid::exec
