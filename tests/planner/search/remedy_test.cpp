#include "planner/search/remedy.h"

#include <map>
#include <regex>

#include "planner/policies/registry.h"
#include "planner/requests.h"
#include "planner/search/fewer_tokens.h"
#include "planner/search/plan_search.h"
#include "support.h"

namespace braid::planner {
namespace {

using testing::Request;
using testing::Study;

constexpr int kMisfits = 60;

/// What make_plan says where it has no plan; nothing where it has one, whose memory is checked.
std::optional<std::string> failure_of(const Request& request) {
  const Study study = request.study();
  try {
    const Plan plan = make_plan(study.input(request.overrides), parse_policy(request.policy));
    for (const Bytes peak : plan.predicted.peak_memory_bytes) EXPECT_LE(peak, request.memory);
    return std::nullopt;
  } catch (const Error& failure) {
    return failure.what();
  }
}

void expect_plan(const Request& request, const std::string& message) {
  EXPECT_EQ(failure_of(request), std::nullopt) << message;
}

/// Without looking for a remedy in turn.
void expect_no_plan(const Request& request, const std::string& message) {
  const Study study = request.study();
  const PlanningInput input = study.input(request.overrides);
  const PolicyChoice choice = parse_policy(request.policy);
  EXPECT_FALSE(PlanSearch(input, choice).fastest()) << message;
}

std::vector<std::string> split(const std::string& list) {
  static const std::regex comma(", ");
  return {std::sregex_token_iterator(list.begin(), list.end(), comma, -1), {}};
}

/// That the tasks kept have a plan, and none with the next beside them: of those left out the one with the shortest
/// samples.
void expect_kept(const Request& request, std::vector<std::string> kept, const std::string& message) {
  Request less = request;
  less.keep(kept);
  EXPECT_EQ(less.workload.tasks.size(), kept.size()) << message;
  expect_plan(less, message);
  const workload::Task* next = nullptr;
  for (const workload::Task& task : request.workload.tasks) {
    if (std::find(kept.begin(), kept.end(), task.name) != kept.end()) continue;
    const auto weight = [](const workload::Task& one) { return std::pair(one.max_length, one.global_batch_size); };
    if (!next || weight(task) < weight(*next)) next = &task;
  }
  ASSERT_NE(next, nullptr) << message;
  kept.push_back(next->name);
  Request more = request;
  more.keep(kept);
  expect_no_plan(more, message);
}

/// Does what a remedy says and expects a plan; where it is a number, none with the next one towards what was asked for.
/// Tells what kind of remedy it is.
std::string expect_cured(const Request& request, const std::string& remedy, const std::string& message) {
  Request cured = request, nearer = request;
  std::smatch words;
  const auto says = [&](const char* form) { return std::regex_match(remedy, words, std::regex(form)); };
  const auto number = [&](std::size_t place) { return std::stoll(words[place]); };
  const auto expect_least = [&](auto change, std::int64_t least, std::int64_t next) {
    change(cured, least);
    expect_plan(cured, message);
    change(nearer, next);
    expect_no_plan(nearer, message);
  };
  if (says("leave out (--[a-z -]*?)(?:, and (.*))?")) {
    if (contains(words[1].str(), "--microbatches")) cured.overrides.microbatches.reset();
    if (contains(words[1].str(), "--pp")) cured.overrides.pp.reset();
    if (words[2].matched) return "override and " + expect_cured(cured, words[2], message);
    expect_plan(cured, message);
    return "override";
  }
  if (says("plan with --layers balanced")) {
    cured.overrides.split.kind = LayerSplit::Kind::balanced;
    expect_plan(cured, message);
    return "layers";
  }
  if (says("plan with --policy (\\S+?)(?:, and (.*))?")) {
    cured.policy = words[1];
    if (words[2].matched) return "policy and " + expect_cured(cured, words[2], message);
    expect_plan(cured, message);
    return parse_policy(cured.policy).policy == parse_policy(request.policy).policy ? "option" : "policy";
  }
  if (says("lower max_length to (\\d+) where it is more(, with on_too_long: truncate)?, which gives up .* tokens")) {
    expect_least([](Request& any, std::int64_t most) { any.lower_max_length(most); }, number(1),
                 number(1) + length_step(request.workload));
    return "max_length";
  }
  if (says("lower global_batch_size to (\\d+) where it is more, which gives up .* tokens")) {
    expect_least([](Request& any, std::int64_t most) { any.lower_global_batch_size(most); }, number(1), number(1) + 1);
    return "global_batch_size";
  }
  if (says("keep (.*) alone, which gives up .* tokens")) {
    expect_kept(request, split(words[1]), message);
    return "tasks";
  }
  if (says("leave out (.*), which gives up .* tokens")) {
    std::vector<std::string> kept = request.names();
    for (const std::string& name : split(words[1])) std::erase(kept, name);
    expect_kept(request, kept, message);
    return "tasks";
  }
  if (says("use (\\d+) GPUs")) {
    expect_least([](Request& any, std::int64_t gpus) { any.use(1, gpus); }, number(1), number(1) - 1);
    return "GPUs";
  }
  if (says("use (\\d+) nodes of (\\d+) GPUs?")) {
    const std::int64_t gpus = number(2);
    expect_least([&](Request& any, std::int64_t nodes) { any.use(nodes, gpus); }, number(1), number(1) - 1);
    return "nodes";
  }
  if (says("of \\d+ plans with less to do or more GPUs none fits; lower max_length, or use more GPUs yet"))
    return "effort";
  EXPECT_TRUE(says("no option or policy fits, no max_length .*, and no more GPUs do")) << message;
  return "none";
}

/// That the message names a task, the policy, a rank, bytes that are missing and those that there are; the remedy.
std::string expect_named(const Request& request, const std::string& message) {
  static const std::regex form(
      "random.yaml: task '(.*)' does not fit memory under ([a-z-]+); (.*) \\(rank (\\d+) misses ([0-9.e-]+) [MG]B of "
      "(.*)\\)");
  std::smatch words;
  if (!std::regex_match(message, words, form)) {
    ADD_FAILURE() << message;
    return "";
  }
  const std::vector<std::string> names = request.names();
  EXPECT_NE(std::find(names.begin(), names.end(), words[1]), names.end()) << message;
  EXPECT_EQ(words[2].str(), parse_policy(request.policy).policy->name());
  EXPECT_LT(std::stoll(words[4]), request.cluster.gpus()) << message;
  EXPECT_GT(std::stod(words[5]), 0) << message;
  EXPECT_EQ(words[6].str(), describe_bytes(request.memory));
  return words[3];
}

TEST(Remedy, WhatIsSuggestedFitsAndNothingNearerToWhatWasAskedForDoes) {
  RandomStream random(20);
  std::map<std::string, int> kinds;
  int requests = 0;
  for (int misfits = 0; misfits < kMisfits; ++requests) {
    ASSERT_LT(requests, 20 * kMisfits);
    const Request request = testing::any_request(random);
    const std::optional<std::string> message = failure_of(request);
    if (!message || !contains(*message, "does not fit memory")) continue;  // there is a plan, or no such deployment
    ++misfits;
    const std::string remedy = expect_named(request, *message);
    ++kinds[expect_cured(request, remedy, fmt::format("request {}, {}: {}", requests, request.policy, *message))];
  }
  for (const auto& [kind, count] : kinds) RecordProperty(kind, count);
  for (const std::string kind : {"option", "policy", "override", "max_length", "GPUs"})
    EXPECT_GT(kinds[kind], 0) << kind;
}

/// Of less and less memory, where all layers are recomputed already and the last stage has the head besides.
TEST(Remedy, LayersSplitByCostAndFreeRecomputationAreSuggestedWhereTheyFit) {
  std::map<std::string, int> kinds;
  for (const std::string options : {":recompute=full", ":recompute=none"}) {
    Request request;
    request.workload = testing::study_workload({{512, 8, 20, 16}}, 16);
    request.workload.backbone.vocabulary = 64000;
    request.workload.file = "random.yaml";
    request.sizes = {std::vector<workload::SampleSize>(32, {512, 511})};
    request.cluster.gpu = "h100";
    request.use(1, 4);
    request.policy = "gpipe" + options;
    for (request.memory = Bytes{4} << 30; request.memory > (Bytes{1} << 30); request.memory -= request.memory / 50) {
      const std::optional<std::string> message = failure_of(request);
      if (!message) continue;
      ++kinds[expect_cured(request, expect_named(request, *message), *message)];
    }
  }
  EXPECT_GT(kinds["layers"], 0);
  EXPECT_GT(kinds["option"], 0);
}

}  // namespace
}  // namespace braid::planner
