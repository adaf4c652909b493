#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "planner/policies/registry.h"
#include "planner/studies.h"
#include "support.h"

namespace braid::planner {
namespace {

using Json = nlohmann::ordered_json;
using testing::make_study;
using testing::Study;

Json written_plan() {
  return Json::parse(to_json(make_plan(make_study({{64, 4}, {32, 2}}, 1, 2).input(), parse_policy("gpipe"))));
}

/// What a build that writes `plan`'s fields would say they are.
void hash_again(Json& plan) {
  for (const char* part : {"workload", "cluster", "profile"}) plan["hashes"][part] = hash_bytes(plan[part].dump(2));
  std::string decisions;
  for (const char* part : {"policy", "deployment", "htasks", "buckets", "chunk_size", "pack_length", "skips_padding",
                           "schedule", "predicted", "lower_bound"})
    decisions += plan[part].dump() + "\n";
  plan["hashes"]["decisions"] = hash_bytes(decisions);
}

std::string refusal(const Json& plan) {
  const TestFolder folder;
  try {
    read_plan(folder.write("plan.json", plan.dump(1)));
  } catch (const Error& refused) {
    return refused.what();
  }
  return "";
}

TEST(PlanFile, APlanOfABuildThatWroteOtherFieldsIsReadAndRuns) {
  const Json mine = written_plan();
  Json other = mine;
  other["profile"]["fan_speed"] = 3;
  other["predicted"]["noise"] = 0.1;
  other["advice"] = "none";
  other["profile"].erase("peak_flops");
  other["profile"]["pass_skew"] = 1.0;  // the default, which this build does not write
  hash_again(other);
  EXPECT_EQ(refusal(other), "");
  const TestFolder folder;
  const Plan plan = read_plan(folder.write("plan.json", other.dump(1)));
  EXPECT_EQ(plan.profile.peak_flops, 0);
  EXPECT_EQ(Json::parse(to_json(plan))["deployment"], mine["deployment"]);
}

TEST(PlanFile, TheFileMayBeLaidOutAnew) {
  const TestFolder folder;
  const Json mine = written_plan();
  for (const int indent : {-1, 0, 7})
    EXPECT_EQ(to_json(read_plan(folder.write("plan.json", mine.dump(indent)))), mine.dump(1) + "\n");
}

TEST(PlanFile, WhatWasGivenUpForMemoryIsReadAndGuarded) {
  const Study study = make_study({{64, 4}, {32, 2}}, 1, 2);
  PlanningInput input = study.input();
  input.preference = Preference::memory;
  const Plan plan = make_plan(input, parse_policy("sl-peft"));
  const Json written = Json::parse(to_json(plan));
  const TestFolder folder;
  const Plan read = read_plan(folder.write("plan.json", written.dump(1)));
  EXPECT_EQ(read.preferred, plan.preferred);
  EXPECT_EQ(to_json(read), to_json(plan));
  for (const char* field : {"free_memory_bytes", "fastest_step_seconds", "fastest_peak_memory_bytes"}) {
    Json edited = written;
    edited["preferred"][field] = 1;
    EXPECT_NE(refusal(edited).find("this plan was changed"), std::string::npos) << field;
    edited["preferred"].erase(field);
    EXPECT_NE(refusal(edited), "") << field;
  }
  Json without = written;
  without.erase("preferred");
  EXPECT_NE(refusal(without).find("this plan was changed"), std::string::npos);
}

TEST(PlanFile, RangesAndBinsAreReadAndGuarded) {
  const Study study = make_study({{64, 4}, {32, 2}}, 1, 2);
  Plan ranges = make_plan(study.input(), parse_policy("lobra"));
  Plan bins = make_plan(study.input(), parse_policy("lorafusion"));
  ASSERT_TRUE(ranges.fixed.dispatch && bins.fixed.batching.bins);
  Plan unlike = bins;
  const std::size_t replicas = unlike.fixed.deployment.size();
  unlike.fixed.batching.bins->unlike = {ranges.fixed.dispatch->interval,
                                        std::vector<std::int64_t>(replicas, bins.fixed.batching.bins->capacity),
                                        ranges.fixed.dispatch->speeds, std::vector<std::int32_t>(replicas, 0)};
  const TestFolder folder;
  for (const Plan* plan : {&ranges, &bins, &unlike}) {
    const Plan read = read_plan(folder.write("plan.json", to_json(*plan)));
    EXPECT_EQ(read.fixed.dispatch, plan->fixed.dispatch);
    EXPECT_EQ(read.fixed.batching.bins, plan->fixed.batching.bins);
    EXPECT_EQ(to_json(read), to_json(*plan));
  }
  Json edited = Json::parse(to_json(ranges));
  edited["dispatch"]["ranges"] = 3;
  EXPECT_NE(refusal(edited).find("this plan was changed"), std::string::npos);
  edited = Json::parse(to_json(bins));
  edited["bins"]["merges"] = !bins.fixed.batching.bins->merges;
  EXPECT_NE(refusal(edited).find("this plan was changed"), std::string::npos);
  edited = Json::parse(to_json(unlike));
  edited["bins"]["unlike"]["speed_of_replica"] = Json::array();
  EXPECT_NE(refusal(edited).find("entries for"), std::string::npos) << refusal(edited);
}

TEST(PlanFile, AnyEditIsRefusedByThePartThatItIsIn) {
  const std::vector<std::pair<std::string, std::function<void(Json&)>>> edits = {
      {"the workload in this plan was changed", [](Json& plan) { plan["workload"]["tasks"][0]["seed"] = 77; }},
      {"the workload in this plan was changed", [](Json& plan) { plan["workload"]["reproducible"] = true; }},
      {"the cluster in this plan was changed", [](Json& plan) { plan["cluster"]["inter_node"]["latency_us"] = 1e3; }},
      {"the profile in this plan was changed", [](Json& plan) { plan["profile"]["memory_bytes"] = 1; }},
      {"the profile in this plan was changed", [](Json& plan) { plan["profile"]["fan_speed"] = 3; }},
      {"the profile in this plan was changed", [](Json& plan) { plan["profile"].erase("peak_flops"); }},
      {"this plan was changed", [](Json& plan) { plan["predicted"]["noise"] = 1; }},
      {"this plan was changed", [](Json& plan) { plan["schedule"]["blocking_messages"] = true; }}};
  for (const auto& [said, edit] : edits) {
    Json plan = written_plan();
    ASSERT_EQ(refusal(plan), "");
    edit(plan);
    EXPECT_NE(refusal(plan).find(said), std::string::npos) << said << ": " << refusal(plan);
  }
}

}  // namespace
}  // namespace braid::planner
