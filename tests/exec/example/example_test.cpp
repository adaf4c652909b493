#include "exec/example/example.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/node.h"
#include "costmodel/shapes/adapter.h"
#include "exec/files/safetensors.h"
#include "support.h"
#include "workload/sample_index.h"
#include "workload/text/dataset.h"
#include "workload/workload.h"

namespace braid::exec {
namespace {

/// Hashes of all files by their path in `folder`.
std::map<std::string, std::string> hashes(const std::filesystem::path& folder) {
  std::map<std::string, std::string> result;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) result[std::filesystem::relative(entry.path(), folder)] = hash_file(entry.path());
  }
  return result;
}

/// The example of seed 1, written once for all tests that only read it.
const std::filesystem::path& example() {
  static const TestFolder folder;
  static const bool written = (write_example(folder.path(), 1), true);
  EXPECT_TRUE(written);
  return folder.path();
}

std::map<std::string, workload::Dataset> datasets(const workload::Workload& all) {
  const auto tokenizer = workload::make_tokenizer(all.backbone_folder, all.backbone);
  std::map<std::string, workload::Dataset> result;
  for (const workload::Task& task : all.tasks)
    result[task.name] = workload::load_dataset(task.dataset, task, *tokenizer, all.backbone, all.backbone_folder);
  return result;
}

TEST(Example, IsAWorkloadOfFourUnlikeTasks) {
  const workload::Workload all = workload::read_workload(example() / "workload.yaml");
  ASSERT_EQ(all.tasks.size(), 4U);
  std::set<std::int64_t> lengths;
  std::vector<std::int64_t> ranks;
  bool dropout = false, clips = false;
  for (const workload::Task& task : all.tasks) {
    lengths.insert(task.max_length);
    ranks.push_back(task.adapter.rank);
    dropout = dropout || task.adapter.dropout > 0;
    clips = clips || task.optimizer.max_grad_norm > 0;
    EXPECT_LE(task.max_length, all.backbone.max_position);
  }
  std::sort(ranks.begin(), ranks.end());
  EXPECT_EQ(lengths, (std::set<std::int64_t>{64, 128, 256, 512}));
  EXPECT_EQ(ranks, (std::vector<std::int64_t>{4, 8, 12, 16}));
  EXPECT_TRUE(dropout);
  EXPECT_TRUE(clips);
}

TEST(Example, TheBackboneIsReadable) {
  const costmodel::BackboneShape shape = costmodel::read_backbone(example() / "models" / "tiny");
  EXPECT_EQ(shape.layers, 4);
  EXPECT_EQ(shape.hidden, 256);
  EXPECT_EQ(shape.kv_heads, 2);
  EXPECT_EQ(shape.head_dim, 32);
  EXPECT_FALSE(shape.tied_head);
  const SafetensorsFolder weights = SafetensorsFolder::open(example() / "models" / "tiny");
  std::int64_t numbers = 0;
  for (const std::string& name : weights.names()) numbers += weights.find(name)->bytes / 4;
  EXPECT_EQ(numbers, shape.parameters());
  weights.read_f32("model.embed_tokens.weight", {320, 256});
  weights.read_f32("lm_head.weight", {320, 256});
  weights.read_f32("model.norm.weight", {256});
  for (int layer = 0; layer < 4; ++layer) {
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) {
      EXPECT_EQ(weights.read_f32(fmt::format("model.layers.{}.{}.weight", layer, norm), {256}),
                std::vector<float>(256, 1.0F));
    }
    for (const costmodel::Module module : costmodel::kModules) {
      if (!costmodel::kSeparateModules[static_cast<std::size_t>(module)]) continue;
      const auto [in, out] = costmodel::module_shape(shape, module);
      const bool attention = costmodel::module_name(module).size() == 6;  // q_proj and its like
      const std::string name = fmt::format("model.layers.{}.{}.{}.weight", layer, attention ? "self_attn" : "mlp",
                                           costmodel::module_name(module));
      double squares = 0;
      for (const float number : weights.read_f32(name, {out, in})) squares += number * number;
      EXPECT_NEAR(squares / static_cast<double>(out), 1.0, 0.05) << "keeps the size of what it reads: " << name;
    }
  }
}

TEST(Example, SpecialTokensAreThoseOfTheTokenizer) {
  const workload::Workload all = workload::read_workload(example() / "workload.yaml");
  const auto tokenizer = workload::make_tokenizer(all.backbone_folder, all.backbone);
  const Node config = read_json(all.backbone_folder / "config.json");
  EXPECT_EQ(config.integer_at("bos_token_id"), tokenizer->facts().bos);
  EXPECT_EQ(config.integer_at("eos_token_id"), tokenizer->facts().eos);
  EXPECT_GE(all.backbone.vocabulary, workload::kByteVocabulary);
}

TEST(Example, EverySampleFitsAndLengthsSpreadOverTheirRange) {
  const workload::Workload all = workload::read_workload(example() / "workload.yaml");
  const auto data = datasets(all);
  const std::map<std::string, std::pair<std::int64_t, std::int64_t>> ranges = {
      {"reviews", {40, 64}}, {"quiz", {80, 128}}, {"entailment", {150, 256}}, {"reports", {300, 512}}};
  for (const auto& [name, dataset] : data) {
    EXPECT_EQ(dataset.dropped + dataset.truncated, 0) << name;
    EXPECT_GE(dataset.samples.size(), 100U);
    const auto [least, most] = ranges.at(name);
    std::set<std::int64_t> lengths;
    for (const workload::SampleSize& size : workload::sample_sizes(dataset)) {
      EXPECT_GE(size.tokens, least) << name;
      EXPECT_LE(size.tokens, most) << name;
      EXPECT_GT(size.supervised, 0);
      lengths.insert(size.tokens);
    }
    EXPECT_GE(*lengths.rbegin() - *lengths.begin(), (most - least) / 2) << name;
    EXPECT_GE(lengths.size(), 10U) << name;
  }
}

TEST(Example, EveryTaskSeesMostOfItsDataInAShortRun) {
  const workload::Workload all = workload::read_workload(example() / "workload.yaml");
  const auto data = datasets(all);
  double tokens = 0;
  for (const workload::Task& task : all.tasks) {
    const workload::Dataset& dataset = data.at(task.name);
    const auto samples = static_cast<std::int64_t>(dataset.samples.size());
    const std::int64_t seen = workload::steps_of(task, samples) * task.global_batch_size;
    EXPECT_GE(2 * seen, samples) << task.name;
    for (const workload::SampleSize& size : workload::sample_sizes(dataset)) {
      tokens += static_cast<double>(size.tokens * seen) / static_cast<double>(samples);
    }
  }
  // Forward, and the way back through frozen weights: 4 FLOPs a parameter and token.
  EXPECT_LT(tokens * 4.0 * static_cast<double>(all.backbone.parameters()), 3e12)
      << "well under a minute on a small machine";
}

TEST(Example, AnswersAreBalancedAndSamplesDiffer) {
  const auto data = datasets(workload::read_workload(example() / "workload.yaml"));
  const auto most_common = [](const workload::Dataset& dataset) {
    std::map<std::vector<std::int32_t>, int> answers;
    for (const workload::Sample& sample : dataset.samples) {
      std::vector<std::int32_t> answer;
      std::copy_if(sample.labels.begin(), sample.labels.end(), std::back_inserter(answer),
                   [](std::int32_t label) { return label != workload::kUnsupervised; });
      ++answers[answer];
    }
    int most = 0;
    for (const auto& [answer, count] : answers) most = std::max(most, count);
    return static_cast<double>(most) / static_cast<double>(dataset.samples.size());
  };
  EXPECT_LT(most_common(data.at("reviews")), 0.62);
  EXPECT_LT(most_common(data.at("entailment")), 0.62);
  EXPECT_LT(most_common(data.at("quiz")), 0.35);
  for (const auto& [name, dataset] : data) {
    std::set<std::vector<std::int32_t>> different;
    for (const workload::Sample& sample : dataset.samples) different.insert(sample.tokens);
    EXPECT_GT(different.size(), dataset.samples.size() * 8 / 10) << name;
  }
}

TEST(Example, ReviewsAreJudgedByTheirWords) {
  const std::string lines = read_file(example() / "data" / "reviews.jsonl");
  int line = 0;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = lines.find('\n', begin);
    const Node row = parse_json(std::string_view(lines).substr(begin, end - begin), "reviews.jsonl", ++line);
    begin = end + 1;
    const std::string prompt = row.string_at("prompt");
    const bool blamed =
        std::ranges::any_of(std::initializer_list<const char*>{"dull", "clumsy", "hollow", "noisy", "tedious",
                                                               "shallow", "lifeless", "muddled"},
                            [&](const char* word) { return contains(prompt, word); });
    EXPECT_EQ(row.string_at("completion"), blamed ? " negative" : " positive") << prompt;
  }
  EXPECT_EQ(line, 400);
}

TEST(Example, TheSeedFixesEveryByte) {
  const TestFolder again, other;
  write_example(again / "new folder", 1);
  write_example(other.path(), 2);
  const auto first = hashes(example()), same = hashes(again / "new folder"), different = hashes(other.path());
  EXPECT_EQ(first, same);
  EXPECT_EQ(first.size(), 8U);
  for (const char* file : {"models/tiny/model.safetensors", "data/reviews.jsonl", "data/quiz.jsonl",
                           "data/entailment.jsonl", "data/reports.jsonl"}) {
    EXPECT_NE(first.at(file), different.at(file)) << file;
  }
  for (const char* file : {"models/tiny/config.json", "workload.yaml"})
    EXPECT_EQ(first.at(file), different.at(file)) << file;
}

TEST(Example, AFolderWithSomethingInItIsLeftAlone) {
  const TestFolder folder;
  folder.write("notes.txt", "mine");
  expect_error([&] { write_example(folder.path(), 1); }, folder.path().string() + ": is not empty; ", "--overwrite");
  EXPECT_EQ(hashes(folder.path()).size(), 1U);
  write_example(folder.path(), 1, true);
  EXPECT_EQ(read_file(folder / "notes.txt"), "mine");
  auto written = hashes(folder.path());
  written.erase("notes.txt");
  EXPECT_EQ(written, hashes(example()));
  expect_error([&] { write_example(folder / "notes.txt", 1, true); }, "notes.txt: is not a folder; ");
}

}  // namespace
}  // namespace braid::exec
