#include "studies/costmodel/crossvalidate.h"

#include <array>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/statistics.h"
#include "studies/costmodel/reference_collectives.h"
#include "studies/costmodel/reference_layers.h"
#include "studies/costmodel/reference_points.h"
#include "studies/costmodel/reference_table.h"

namespace braid::costmodel::studies {
namespace {

struct Table {
  std::string_view columns;
  void (*run)(const std::filesystem::path&);
};

constexpr std::array kTables = {Table{kReferencePointColumns, crossvalidate_operators},
                                Table{kReferenceCollectiveColumns, crossvalidate_collectives},
                                Table{kReferenceLayerColumns, crossvalidate_layers},
                                Table{kReferenceCapacityColumns, crossvalidate_capacities}};

}  // namespace

void crossvalidate(const std::filesystem::path& table) {
  const std::string header = reference_header(table);
  std::vector<std::string_view> known;
  for (const Table& one : kTables) {
    if (one.columns == header) return one.run(table);
    known.push_back(one.columns);
  }
  throw error_at(table.string(), 1, "this is no table of measurements that is known",
                 fmt::format("give one with the columns {}", fmt::join(known, " or ")));
}

void print_error_header() {
  fmt::print("{}", error_table_heading());
}

void print_errors(const std::string& what, const std::vector<double>& errors) {
  if (!errors.empty()) fmt::print("{}", error_table_line(what, errors));
}

}  // namespace braid::costmodel::studies
