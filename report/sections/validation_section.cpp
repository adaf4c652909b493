#include <cmath>

#include <fmt/core.h>

#include "report/charts/scatter_chart.h"
#include "report/sections/sections.h"

namespace braid::report {
namespace {

struct Row {
  std::string what;
  double predicted = 0, measured = 0, error = 0;
};

Row row_of(const Node& node) {
  return {node.string_at("what"), node.number_or("predicted", std::nan("")), node.number_or("measured", std::nan("")),
          node.number_or("error", std::nan(""))};
}

std::vector<Row> rows_of(const Node& node, std::string_view key) {
  std::vector<Row> rows;
  if (const Node* list = node.find(key))
    for (const Node& one : list->sequence(key)) rows.push_back(row_of(one));
  return rows;
}

void add(const std::vector<Row>& rows, std::size_t group, double size, ScatterChart& chart) {
  for (const Row& row : rows) chart.marks.push_back({row.what, row.measured / size, row.predicted / size, group});
}

/// Each in the unit that it reads best in.
void add(const std::vector<Row>& rows, Unit (*unit_of)(double), Table& table) {
  for (const Row& row : rows) {
    const Unit unit = unit_of(std::max(row.predicted, row.measured));
    table.rows.push_back({row.what, fmt::format("{} {}", number_text(unit.of(row.predicted)), unit.name),
                          fmt::format("{} {}", number_text(unit.of(row.measured)), unit.name),
                          signed_percent(row.error)});
  }
}

/// The share of what lies within 10 % of what was measured.
std::string within(const ScatterChart& chart) {
  std::size_t near = 0;
  for (const Mark& mark : chart.marks) near += std::abs(mark.y / mark.x - 1) <= chart.band ? 1 : 0;
  return fmt::format("{} of {} predictions lie within {:.0f} % of what was measured", near, chart.marks.size(),
                     100 * chart.band);
}

}  // namespace

bool is_validation(const Node& node) {
  return node.is_map() && node.find("kinds") && node.find("stages") && node.find("step_seconds");
}

Section validation_section(const Node& validation, const std::filesystem::path& source) {
  const Row window = row_of(validation.at("step_seconds"));
  Section section{"Validation: predicted beside measured", source.string()};
  const Unit unit = unit_of_seconds(std::max(window.predicted, window.measured));
  section.paragraphs.push_back(
      fmt::format("A window was predicted to take {} {} and took {} {} in the median of {} windows run {} times: {}. A "
                  "negative error: it takes longer than was predicted.",
                  number_text(unit.of(window.predicted)), unit.name, number_text(unit.of(window.measured)), unit.name,
                  validation.integer_or("windows", 0), validation.integer_or("runs", 0), signed_percent(window.error)));
  const std::vector<Row> kinds = rows_of(validation, "kinds"), stages = rows_of(validation, "stages"),
                         operators = rows_of(validation, "operators"),
                         memory = rows_of(validation, "peak_memory_bytes");
  Table& table = section.table;
  table.columns = {"", "predicted", "measured", "error"};
  add(kinds, &unit_of_seconds, table);
  add(stages, &unit_of_seconds, table);
  add({window}, &unit_of_seconds, table);
  if (const Node* pace = validation.find("step_seconds_at_profiled_pace"); pace && pace->is_map())
    add({row_of(*pace)}, &unit_of_seconds, table);
  if (const Node* bubble = validation.find("bubble_ratio"); bubble && bubble->is_map()) {
    const Row row = row_of(*bubble);
    table.rows.push_back({row.what, fmt::format("{:.1f} %", 100 * row.predicted),
                          fmt::format("{:.1f} %", 100 * row.measured), signed_percent(row.error)});
  }
  double most = 0;
  for (const Row& row : memory) most = std::max(most, row.measured);
  const Unit size = unit_of_bytes(most);
  add(memory, &unit_of_bytes, table);

  ScatterChart times;
  times.x = {"measured, over all windows / " + unit.name, true};
  times.y = {"predicted / " + unit.name, true};
  times.groups = {"kinds of instruction", "stages", "window"};
  add(kinds, 0, unit.size, times);
  add(stages, 1, unit.size, times);
  add({window}, 2, unit.size, times);
  if (!operators.empty()) {
    times.groups.emplace_back("operators");
    add(operators, 3, unit.size, times);
  }
  times.what = within(times) + "; what lies below the strip takes longer than predicted.";
  section.figures.push_back({times.what, to_html(times), {}});
  if (!memory.empty()) {
    ScatterChart bytes;
    bytes.x = {"measured / " + size.name};
    bytes.y = {"predicted / " + size.name};
    bytes.groups = {"peak of a rank"};
    add(memory, 0, size.size, bytes);
    bytes.what = "Memory: " + within(bytes) + ".";
    section.figures.push_back({bytes.what, to_html(bytes), {}});
  }
  return section;
}

}  // namespace braid::report
