#include <algorithm>

#include <fmt/core.h>

#include "report/charts/bar_chart.h"
#include "report/sections/sections.h"

namespace braid::report {
namespace {

struct Entry {
  std::string policy, deployment;
  double step = 0, bound = 0, rate = 0, bubble = 0, memory = 0;
};

}  // namespace

bool is_comparison(const Node& node) {
  return node.is_map() && node.find("policies") && node.find("format");
}

Section comparison_section(const Node& comparison, const std::filesystem::path& source) {
  Section section{"Comparison of policies", source.string()};
  std::vector<Entry> entries;
  for (const Node& one : comparison.at("policies").sequence("policies")) {
    const std::string policy = one.string_at("policy");
    if (const Node* error = one.find("error"); error && !error->is_null()) {
      section.paragraphs.push_back(fmt::format("{} has no plan: {}", policy, error->as_string("error")));
      continue;
    }
    const Node& predicted = one.at("predicted");
    Entry entry{policy,
                one.string_or("deployment", ""),
                predicted.number_at("step_seconds"),
                one.at("lower_bound").number_at("step_seconds"),
                predicted.number_or("effective_tokens_per_second", 0),
                predicted.number_or("bubble_ratio", 0)};
    for (const Node& bytes : predicted.at("peak_memory_bytes").sequence("peak_memory_bytes"))
      entry.memory = std::max(entry.memory, bytes.as_number("peak_memory_bytes"));
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) return section;
  double slowest = 0, fullest = 0;
  for (const Entry& entry : entries) {
    slowest = std::max(slowest, entry.step);
    fullest = std::max(fullest, entry.memory);
  }
  const Unit time = unit_of_seconds(slowest), size = unit_of_bytes(fullest);
  section.table.columns = {"policy",          "deployment", "step / " + time.name, "lower bound / " + time.name, "gap",
                           "billed tokens/s", "bubble",     "peak / " + size.name};
  BarChart steps, memory;
  steps.x.label = "a step of every task / " + time.name;
  steps.bound_name = "proven lower bound of the policy";
  memory.x.label = "peak memory of the fullest rank / " + size.name;
  for (const Entry& entry : entries) {
    section.table.rows.push_back(
        {entry.policy, entry.deployment, number_text(time.of(entry.step)), number_text(time.of(entry.bound)),
         fmt::format("{:.1f} %", 100 * (entry.step / entry.bound - 1)), number_text(entry.rate),
         fmt::format("{:.1f} %", 100 * entry.bubble), number_text(size.of(entry.memory))});
    steps.bars.push_back({entry.policy, time.of(entry.step), time.of(entry.bound)});
    memory.bars.push_back({entry.policy, size.of(entry.memory)});
  }
  const auto fastest = std::ranges::min_element(entries, {}, &Entry::step);
  const auto last = std::ranges::max_element(entries, {}, &Entry::step);
  const auto leanest = std::ranges::min_element(entries, {}, &Entry::memory);
  steps.what = fmt::format("{} is the fastest, {:.2f} times as fast as {}.", fastest->policy,
                           last->step / fastest->step, last->policy);
  if (entries.size() == 1) steps.what = fmt::format("What {} takes.", fastest->policy);
  memory.what = fmt::format("{} takes the least memory, {} {}.", leanest->policy, number_text(size.of(leanest->memory)),
                            size.name);
  section.figures.push_back({steps.what, to_html(steps), {}});
  section.figures.push_back({memory.what, to_html(memory), {}});
  return section;
}

}  // namespace braid::report
