#include "workload/sweep.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "support.h"

namespace braid::workload {
namespace {

std::vector<Node> expanded(const std::string& text) {
  return expand_sweep(parse_yaml(text, "workload.yaml"));
}

TEST(Sweep, WithoutListsATaskIsItself) {
  const auto tasks = expanded("{name: a, adapter: {r: 8, target_modules: [q_proj, v_proj]}, steps: 3}");
  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_EQ(tasks[0].string_at("name"), "a");
  EXPECT_EQ(tasks[0].at("adapter").at("target_modules").items.size(), 2U);
}

/// Every combination once, the last list changing first.
TEST(Sweep, ListsMakeATaskForEachCombination) {
  const auto tasks = expanded(
      "{name: a, adapter: {r: [8, 16, 32], target_modules: [[q_proj], [q_proj, v_proj]]}, steps: 3, optimizer: {lr: "
      "[1e-4, "
      "3e-4]}}");
  ASSERT_EQ(tasks.size(), 12U);
  std::set<std::string> names;
  for (const Node& task : tasks) names.insert(task.string_at("name"));
  EXPECT_EQ(names.size(), 12U);
  EXPECT_EQ(tasks[0].string_at("name"), "a-r8-target_modules_q_proj-lr1e-4");
  EXPECT_EQ(tasks[1].string_at("name"), "a-r8-target_modules_q_proj-lr3e-4");
  EXPECT_EQ(tasks[11].string_at("name"), "a-r32-target_modules_q_proj_v_proj-lr3e-4");
  EXPECT_EQ(tasks[11].at("adapter").integer_at("r"), 32);
  EXPECT_EQ(tasks[11].at("adapter").at("target_modules").items.size(), 2U);
  EXPECT_EQ(tasks[11].at("optimizer").number_at("lr"), 3e-4);
  EXPECT_EQ(tasks[11].integer_at("steps"), 3);
}

TEST(Sweep, ListsThatMakeNoTasksAreRefused) {
  expect_error([] { expanded("{name: a, seed: []}"); }, "'seed' is an empty list", "give a value");
  std::string many = "{name: a, seed: [0";
  for (int i = 1; i < 33; ++i) many += ", " + std::to_string(i);
  expect_error([&] { expanded(many + "], priority: " + many.substr(16) + "]}"); }, "more than 1024 tasks", "fewer");
}

}  // namespace
}  // namespace braid::workload
