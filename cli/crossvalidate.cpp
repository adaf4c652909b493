#include "cli/crossvalidate.h"

#include <array>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/statistics.h"
#include "costmodel/reference_collectives.h"
#include "costmodel/reference_layers.h"
#include "costmodel/reference_points.h"
#include "costmodel/reference_table.h"

namespace braid::cli {
namespace {

struct Table {
  std::string_view columns;
  void (*run)(const std::filesystem::path&);
};

constexpr std::array kTables = {Table{costmodel::kReferencePointColumns, crossvalidate_operators},
                                Table{costmodel::kReferenceCollectiveColumns, crossvalidate_collectives},
                                Table{costmodel::kReferenceLayerColumns, crossvalidate_layers},
                                Table{costmodel::kReferenceCapacityColumns, crossvalidate_capacities}};

}  // namespace

void crossvalidate(const std::filesystem::path& table) {
  if (table.extension() == ".json") return crossvalidate_profile(table);
  const std::string header = costmodel::reference_header(table);
  std::vector<std::string_view> known;
  for (const Table& one : kTables) {
    if (one.columns == header) return one.run(table);
    known.push_back(one.columns);
  }
  throw error_at(table.string(), 1, "this is no table of measurements that is known",
                 fmt::format("give one with the columns {}", fmt::join(known, " or ")));
}

void print_error_header() {
  fmt::print("  {:35} {:>7} {:>10} {:>10}\n", "", "points", "median", "95 %");
}

void print_errors(const std::string& what, const std::vector<double>& errors) {
  if (errors.empty()) return;
  fmt::print("  {:35} {:>7} {:>8.1f} % {:>8.1f} %\n", what, errors.size(), 100 * median(errors),
             100 * quantile(errors, 0.95));
}

}  // namespace braid::cli
