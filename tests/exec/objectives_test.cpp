#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/file.h"
#include "exec/objectives/task_objectives.h"
#include "exec/slopes.h"
#include "exec/tasks.h"
#include "exec/training.h"

namespace braid::exec {
namespace {

workload::Objective preference(double beta, double smoothing = 0) {
  return {workload::ObjectiveKind::dpo, beta, smoothing};
}

RC_GTEST_PROP(Objectives, ThePairsSlopeIsThatOfItsLoss, ()) {
  const auto number = [](int least, int most) { return 0.01 * *rc::gen::inRange(100 * least, 100 * most); };
  const workload::Objective objective = preference(number(0, 2) + 0.01, 0.1 * *rc::gen::inRange(0, 5));
  const PairSums now = {number(0, 90), number(0, 90)}, reference = {number(0, 90), number(0, 90)};
  const PairTerms terms = pair_terms(objective, now, reference);
  constexpr double kStep = 1e-4;
  for (const std::size_t sequence : {0U, 1U}) {
    PairSums above = now, below = now;
    above[sequence] += kStep, below[sequence] -= kStep;
    const double slope =
        (pair_terms(objective, above, reference).loss - pair_terms(objective, below, reference).loss) / (2 * kStep);
    RC_ASSERT(std::abs(slope - (sequence == 0 ? terms.slope : -terms.slope)) < 1e-5);
  }
}

TEST(Objectives, APairAsItBeganCostsTheLogarithmOf2) {
  const PairTerms terms = pair_terms(preference(0.1), {3, 5}, {3, 5});
  EXPECT_DOUBLE_EQ(terms.loss, std::log(2.0));
  EXPECT_EQ(terms.margin, 0);
  EXPECT_DOUBLE_EQ(terms.slope, 0.05);
}

/// The closed form, and what stays finite where its exponentials do not.
TEST(Objectives, PairsFollowTheClosedForm) {
  const PairTerms terms = pair_terms(preference(0.5, 0.1), {2, 7}, {4, 6});
  EXPECT_DOUBLE_EQ(terms.margin, 0.5 * ((4 - 2) - (6 - 7)));
  const auto sigmoid = [](double z) { return 1 / (1 + std::exp(-z)); };
  EXPECT_NEAR(terms.loss, -0.9 * std::log(sigmoid(1.5)) - 0.1 * std::log(sigmoid(-1.5)), 1e-14);
  const PairTerms lost = pair_terms(preference(1), {1e4, 0}, {0, 0});
  EXPECT_DOUBLE_EQ(lost.loss, 1e4);
  EXPECT_DOUBLE_EQ(lost.slope, 1);
  const PairTerms won = pair_terms(preference(1), {0, 1e4}, {0, 0});
  EXPECT_EQ(won.loss, 0);
  EXPECT_EQ(won.slope, 0);
}

TEST(Objectives, WeightsBelowZeroAndBetweenAreThoseOfTheLosses) {
  Tasks tasks({adapter_shape(2, 0, kAll)});
  RandomStream random(3);
  double expected = 0, unweighted = 0;
  for (workload::Sample& sample : tasks.datasets[0].samples) {
    workload::Sample weighted;
    for (std::size_t i = 0; i < sample.tokens.size(); ++i)
      weighted.append(sample.tokens[i], static_cast<float>(random.next_normal()));
    sample = std::move(weighted);
  }
  // Token by token, as each would be by itself.
  const std::vector<workload::Sample> whole = tasks.datasets[0].samples;
  for (std::size_t s = 0; s < whole.size(); ++s) {
    for (std::size_t i = 1; i < whole[s].tokens.size(); ++i) {
      tasks.datasets[0].samples = whole;
      for (workload::Sample& sample : tasks.datasets[0].samples)
        std::ranges::fill(sample.labels, workload::kUnsupervised), sample.weights.clear();
      tasks.datasets[0].samples[s].labels[i] = whole[s].labels[i];
      const double loss = tasks.pass(tasks.microbatch({0}))[0];
      expected += loss * double{whole[s].weights[i]}, unweighted += loss;
    }
  }
  tasks.datasets[0].samples = whole;
  tasks.take_gradient(0);
  EXPECT_NEAR(tasks.pass(tasks.microbatch({0}))[0], expected, 1e-5 * unweighted);
  const std::vector<float> gradient = tasks.take_gradient(0);
  expect_slopes(tasks.adapters[0]->parameters().span(), gradient, [&] {
    const double loss = tasks.pass(tasks.microbatch({0}))[0];
    tasks.take_gradient(0);
    return loss;
  });
}

/// A task of three pairs, beside one of plain samples.
struct Pairs : Tasks {
  Pairs() : Tasks({adapter_shape(2, 0.2, kAll), adapter_shape(4, 0, {Module::q, Module::down})}) {
    const std::vector<workload::Sample> plain = datasets[0].samples;
    for (std::size_t i = 0; i < plain.size(); ++i)
      datasets[0].samples[i] = workload::pair_of(plain[i], plain[(i + 1) % plain.size()]);
    std::vector<workload::Task> made(2);
    made[0].objective = preference(0.3);
    for (workload::Task& task : made) task.global_batch_size = 3, task.steps = 1;
    index.emplace(made, std::vector{workload::sample_sizes(datasets[0]), workload::sample_sizes(datasets[1])});
    objectives.emplace(made, *index);
    objectives->set_references(0, {{90, 80}, {70, 95}, {60, 61}});
  }

  /// Its loss, by the objective's own account.
  double loss_of(const std::function<void()>& passes) {
    passes();
    objectives->finish(1, 0);
    return objectives->finish(0, 0).loss;
  }
  planner::Microbatch pairs() const {
    planner::Microbatch whole = microbatch({0, 1});
    for (planner::Segment& segment : whole.segments)
      segment.chosen = static_cast<std::int32_t>(
          datasets[static_cast<std::size_t>(segment.task)].samples[static_cast<std::size_t>(segment.sample)].chosen);
    return whole;
  }

  std::optional<workload::SampleIndex> index;
  std::optional<TaskObjectives> objectives;
};

TEST(Objectives, GradientsOfPairsAreTheSlopesOfTheirLoss) {
  Pairs pairs;
  const auto loss = [&] { return pairs.loss_of([&] { pairs.pass(pairs.pairs(), *pairs.objectives); }); };
  loss();
  pairs.take_gradient(1);
  const std::vector<float> gradient = pairs.take_gradient(0);
  expect_slopes(pairs.adapters[0]->parameters().span(), gradient, [&] {
    const double found = loss();
    pairs.take_gradient(0);
    return found;
  });
}

/// Cut anywhere, also between and over the two sequences of a pair, each reads its own earlier tokens alone.
TEST(Objectives, PairsInChunksAreThePairs) {
  Pairs pairs;
  const double loss = pairs.loss_of([&] { pairs.pass(pairs.pairs(), *pairs.objectives); });
  const std::vector<float> gradient = pairs.take_gradient(0), plain = pairs.take_gradient(1);
  for (const std::int32_t size : {3, 8, 16, 40}) {
    const std::vector<planner::Microbatch> chunks = pairs.chunks(pairs.pairs(), size);
    EXPECT_NEAR(pairs.loss_of([&] { pairs.pass_of_chunks(chunks, *pairs.objectives); }), loss, 1e-6 * loss) << size;
    EXPECT_LT(testing::relative_difference(pairs.take_gradient(0), gradient), 1e-5) << size;
    EXPECT_LT(testing::relative_difference(pairs.take_gradient(1), plain), 1e-5) << size;
  }
}

/// A pair's sequences see nothing of each other.
TEST(Objectives, APairsLossesAreThoseOfItsSequencesAlone) {
  Pairs pairs;
  pairs.shapes[0].dropout = 0;
  pairs.adapters[0] = std::make_unique<Adapter>(pairs.golden.backbone, pairs.shapes[0], pairs.golden.layers(), 5);
  const double together = pairs.Tasks::pass(pairs.pairs())[0];
  std::vector<workload::Sample> sequences;
  for (const workload::Sample& pair : pairs.datasets[0].samples) {
    for (workload::Sample& sequence : workload::sequences_of(pair)) sequences.push_back(std::move(sequence));
  }
  pairs.datasets[0].samples = std::move(sequences);
  const double apart = pairs.Tasks::pass(pairs.pairs())[0];
  EXPECT_NEAR(together, apart, 1e-6 * apart);
}

/// The study's tasks 0 and 3 on pairs, task 1 with weights of both signs.
struct PairStudy : TrainerStudy {
  PairStudy() {
    std::vector<std::vector<workload::SampleSize>> sizes;
    for (std::size_t t = 0; t < 4; ++t) {
      std::vector<workload::Sample>& rows = datasets[t].samples;
      const std::vector<workload::Sample> plain = rows;
      if (t == 0 || t == 3) {
        workload.tasks[t].objective = preference(t == 0 ? 0.5 : 0.1, t == 0 ? 0 : 0.2);
        for (std::size_t i = 0; i < rows.size(); ++i) {
          workload::Sample backwards;
          for (std::size_t place = plain[i].tokens.size() - i % 3; place-- > 0;)
            backwards.append(plain[i].tokens[place], place < 6 ? 0 : 1);
          rows[i] = workload::pair_of(plain[i], backwards);
        }
      }
      if (t == 1) {
        for (workload::Sample& sample : rows) {
          workload::Sample weighted;
          for (std::size_t i = 0; i < sample.tokens.size(); ++i)
            weighted.append(sample.tokens[i], i % 5 == 4 ? -0.25F : 0.5F + 0.125F * static_cast<float>(i % 3));
          sample = std::move(weighted);
        }
      }
      sizes.push_back(workload::sample_sizes(datasets[t]));
    }
    samples.emplace(workload.tasks, std::move(sizes));
  }
};

TEST(Objectives, PairsAreLearnedOnAnyDeployment) {
  const PairStudy study;
  const Trained one = train_on(study, apart(PipelineTemplate::one_forward_one_backward, 1));
  EXPECT_NEAR(one.steps[0].front().loss, std::log(2.0), 1e-6);
  EXPECT_EQ(one.steps[0].front().reward_margin, 0);
  EXPECT_GT(one.steps[0].back().reward_margin, 0.1);
  EXPECT_EQ(one.steps[0].back().reward_accuracy, 1);
  for (const auto& [tp, pp, replicas] : {std::tuple{2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 2, 1}, {1, 2, 2}}) {
    const Trained many = train_on(study, two_layers_on(tp, pp, replicas));
    expect_near(many, one, 2e-5, fmt::format("tp {} pp {} replicas {}", tp, pp, replicas));
    for (std::size_t i = 0; i < one.steps[0].size(); ++i)
      EXPECT_NEAR(many.steps[0][i].reward_margin, one.steps[0][i].reward_margin, 1e-4);
  }
  for (const std::int64_t chunk : {16, 32}) {
    planner::FixedPlan chunked = two_layers_on(1, 2, 1);
    chunked.batching.chunk_size = chunk;
    chunked.batching.padding = planner::Padding::none;
    expect_near(train_on(study, chunked), one, 2e-5, fmt::format("chunks of {}", chunk));
  }
  planner::FixedPlan streams = two_layers_on(1, 2, 1);
  streams.schedule.pipeline = PipelineTemplate::lora_1f1b;
  streams.schedule.steps_per_window = 2;
  expect_near(train_on(study, streams), one, 2e-5, "a stream");
  expect_nothing_hurries(study, two_layers_on(1, 2, 1), "pairs on two stages");
}

/// tests/golden/dpo: what TRL's DPOTrainer makes of the same pairs, from the same adapter.
TEST(Objectives, PairsAreLearnedAsTrlLearnsThem) {
  const std::filesystem::path folder = golden("dpo");
  const std::string file = (folder / "trained.json").string();
  const Node trained = parse_json(read_file(folder / "trained.json"), file, 1);
  const std::vector<Node>& losses = trained.at("loss").items;
  TrainerStudy study;
  study.workload.tasks.resize(1), study.datasets.clear();
  workload::Task& task = study.workload.tasks[0];
  task.init_from = study.workload.backbone_folder / "adapter";
  task.adapter = testing::read_adapter_shape(task.init_from, study.workload.backbone.architecture);
  task.objective = preference(trained.number_at("beta"));
  task.optimizer.lr = trained.number_at("lr");
  task.max_length = 40;
  const auto tokenizer = workload::make_tokenizer(study.workload.backbone_folder, study.workload.backbone);
  study.datasets.push_back(workload::load_dataset(folder / "pairs.jsonl", task, *tokenizer, study.workload.backbone,
                                                  study.workload.backbone_folder));
  task.global_batch_size = std::ssize(study.datasets[0].samples);
  task.steps = std::ssize(losses);
  study.samples.emplace(study.workload.tasks,
                        std::vector<std::vector<workload::SampleSize>>{workload::sample_sizes(study.datasets[0])});
  planner::FixedPlan fixed = apart(PipelineTemplate::one_forward_one_backward, 1);
  planner::one_task_per_htask(1, fixed);
  const Trained ours = train_on(study, fixed);
  ASSERT_EQ(ours.steps[0].size(), losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const StepMetrics& step = ours.steps[0][i];
    EXPECT_NEAR(step.loss, losses[i].as_number("loss"), 2e-5 * losses[i].as_number("loss")) << i;
    EXPECT_NEAR(step.reward_margin, trained.at("margin").items[i].as_number("margin"), 5e-5) << i;
    EXPECT_NEAR(step.reward_accuracy, trained.at("accuracy").items[i].as_number("accuracy"), 1e-6) << i;
  }
}

}  // namespace
}  // namespace braid::exec
