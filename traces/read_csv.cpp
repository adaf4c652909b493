#include "traces/read_csv.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/utf8.h"
#include "traces/read_pai.h"

namespace braid::traces {
namespace {

/// Where a table says what. Columns it need not have are empty, or have a name behind '?'; "a|b" is either of two
/// names, of which a file has one. A file is of the first format here whose columns it has.
struct Table {
  std::string_view format;
  std::string_view id, submit, start, end, duration, gpus, virtual_cluster, priority, deadline, budget;
};

constexpr std::array<Table, 7> kTables = {{
    {"philly-csv", "", "timestamp", "", "", "duration", "num_gpus", "cluster", "", "", ""},
    {"itp", "job_id", "submission_time", "", "", "duration", "num_gpu", "", "", "", ""},
    {"acme", "job_id", "submit_time", "start_time", "end_time", "duration", "gpu_num", "", "", "", ""},
    {"helios", "job_id", "submit_time", "start_time", "end_time", "duration", "gpu_num", "vc", "", "", ""},
    {"openb", "name", "creation_time", "scheduled_time", "deletion_time", "", "num_gpu", "", "", "", ""},
    {"braid", "?job_id", "submit_s", "", "", "duration_s", "?gpus|num_gpus", "?vc", "?priority", "?deadline_s",
     "?budget_gpu_hours"},
    {"jobs", "?job_id|id", "submit_time|submission_time|submit|arrival_time|arrival|submit_s", "?start_time|start",
     "?end_time|finish_time|end", "?duration|run_time|service_time|job_duration|duration_s",
     "gpus|num_gpus|num_gpu|gpu_num|n_gpus|gpu_count|gpu", "?vc|virtual_cluster", "?priority", "", ""},
}};

constexpr double kMostSeconds = 1e12;

/// "JobID", "job id" and "job_id" are one name.
bool same_name(std::string_view a, std::string_view b) {
  const auto plain = [](std::string_view name) {
    std::string letters;
    for (const char letter : name) {
      if (letter != '_' && letter != ' ')
        letters += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
    return letters;
  };
  return plain(a) == plain(b);
}

bool named(std::string_view column, std::string_view names) {
  while (true) {
    const std::size_t bar = names.find('|');
    if (same_name(column, names.substr(0, bar))) return true;
    if (bar == std::string_view::npos) return false;
    names.remove_prefix(bar + 1);
  }
}

/// A column's place in the rows, at or behind `from`; nothing where the file lacks it.
std::optional<std::size_t> place_of(std::string_view names, std::span<const std::string_view> columns,
                                    std::size_t from = 0) {
  if (names.starts_with('?')) names.remove_prefix(1);
  for (std::size_t i = from; i < columns.size(); ++i) {
    if (!names.empty() && named(columns[i], names)) return i;
  }
  return std::nullopt;
}

constexpr std::array kRoles = {&Table::id,       &Table::submit, &Table::start,           &Table::end,
                               &Table::duration, &Table::gpus,   &Table::virtual_cluster, &Table::priority,
                               &Table::deadline, &Table::budget};

/// What --columns calls them, likewise.
constexpr std::array<std::string_view, kRoles.size()> kRoleWords = {
    "id", "submit", "start", "end", "duration", "gpus", "vc", "priority", "deadline", "budget"};

bool has_columns(const Table& table, std::span<const std::string_view> columns) {
  const auto has = [&](std::string_view names) { return place_of(names, columns).has_value(); };
  const bool tells_duration = has(table.duration) || (has(table.start) && has(table.end));
  return tells_duration && std::all_of(kRoles.begin(), kRoles.end(), [&](auto role) {
           const std::string_view names = table.*role;
           return names.empty() || names.starts_with('?') || has(names);
         });
}

/// Rows of one table.
class TableReader {
 public:
  TableReader(const Table& table, CsvReader& rows, TraceBuilder& trace)
      : table_(table),
        rows_(rows),
        trace_(trace),
        columns_(rows.fields().size()),
        names_(rows.fields().begin(), rows.fields().end()) {
    rows.check_distinct();
    for (std::size_t role = 0; role < kRoles.size(); ++role) places_[role] = only_place_of(table.*kRoles[role]);
    for (std::size_t column = 0; column < columns_; ++column) {
      if (std::find(places_.begin(), places_.end(), column) == places_.end())
        trace.add_unread_column(rows.fields()[column]);
    }
  }

  void read_row() {
    if (rows_.fields().size() != columns_)
      throw wrong(fmt::format("{} fields where the columns are {}", rows_.fields().size(), columns_), "mend the row");
    Job job;
    job.gpus = whole(&Table::gpus, 1, 0);
    if (job.gpus == 0) return trace_.skip(Skipped::without_gpu);
    if (has(&Table::start) && is_missing(text(&Table::start))) return trace_.skip(Skipped::never_ran);
    const std::optional<double> duration = service_seconds();
    if (!duration) return trace_.skip(Skipped::unfinished);
    job.duration_seconds = *duration;
    job.submit_seconds = moment(&Table::submit);
    if (given(&Table::id)) job.id = text(&Table::id);
    job.priority = whole(&Table::priority, 0, std::numeric_limits<std::int32_t>::min());
    if (given(&Table::deadline)) job.deadline_seconds = moment(&Table::deadline);
    if (given(&Table::budget)) job.budget = seconds(&Table::budget);
    trace_.add(std::move(job), given(&Table::virtual_cluster) ? text(&Table::virtual_cluster) : "");
  }

 private:
  using Role = std::string_view Table::*;

  std::optional<std::size_t> place(Role role) const {
    return places_[static_cast<std::size_t>(std::find(kRoles.begin(), kRoles.end(), role) - kRoles.begin())];
  }
  bool has(Role role) const { return place(role).has_value(); }
  std::string_view text(Role role) const { return rows_.fields()[*place(role)]; }
  bool given(Role role) const { return has(role) && !is_missing(text(role)); }
  std::string_view name(Role role) const { return names_[*place(role)]; }

  /// place_of for the row that names the columns; throws Error when two of them are names of one thing.
  std::optional<std::size_t> only_place_of(std::string_view names) const {
    const std::span<const std::string_view> columns = rows_.fields();
    const std::optional<std::size_t> first = place_of(names, columns);
    const std::optional<std::size_t> second = first ? place_of(names, columns, *first + 1) : std::nullopt;
    if (second)
      throw wrong(fmt::format("columns '{}' and '{}' are two names of one thing", columns[*first], columns[*second]),
                  "leave one of them out, or choose with --columns");
    return first;
  }

  Error wrong(const std::string& what, const std::string& remedy) const {
    return error_at(rows_.file(), rows_.line(), what, remedy);
  }

  double moment(Role role) { return checked(parsed_moment(role), role); }

  double parsed_moment(Role role) {
    try {
      return trace_.moment(text(role), name(role));
    } catch (const Error& wrong) {
      throw error("{}:{}: {}", rows_.file(), rows_.line(), wrong.what());
    }
  }

  double checked(double value, Role role) const {
    if (std::abs(value) > kMostSeconds)
      throw wrong(fmt::format("{} {} is past 30,000 years", name(role), text(role)), "give seconds");
    return value;
  }

  double seconds(Role role) const {
    const double value = checked(rows_.number(*place(role), name(role)), role);
    if (value < 0) throw wrong(fmt::format("{} {} is negative", name(role), text(role)), "give a number >= 0");
    return value;
  }

  /// A count, which tables also write as "1.0".
  std::int32_t whole(Role role, std::int32_t otherwise, std::int32_t least) const {
    if (!given(role)) return otherwise;
    const double value = rows_.number(*place(role), name(role));
    if (value < least || value > std::numeric_limits<std::int32_t>::max() || value != std::floor(value))
      throw wrong(fmt::format("{} '{}' is no count", name(role), text(role)), "give a whole number");
    return static_cast<std::int32_t>(value);
  }

  std::optional<double> service_seconds() {
    if (has(&Table::end) && is_missing(text(&Table::end))) return std::nullopt;
    if (given(&Table::duration)) return seconds(&Table::duration);
    if (!has(&Table::end) || !has(&Table::start)) return std::nullopt;
    const double begin = moment(&Table::start), end = moment(&Table::end);
    if (end < begin)
      throw wrong(fmt::format("it ends at {}, before its start at {}", text(&Table::end), text(&Table::start)),
                  "mend the row");
    return end - begin;
  }

  const Table& table_;
  CsvReader& rows_;
  TraceBuilder& trace_;
  std::size_t columns_;
  std::vector<std::string> names_;  // of the columns, as in the file
  std::array<std::optional<std::size_t>, kRoles.size()> places_;
};

/// Reads all rows from the next one on, or from the one fetched last where `at_row`.
template <typename ReadRow>
void read_rows(CsvReader& rows, bool at_row, bool lenient, TraceBuilder& trace, const ReadRow& read_row) {
  for (;; at_row = false) {
    try {
      if (!at_row && !rows.next()) return;
      read_row();
    } catch (const Error& wrong) {
      if (!lenient) throw;
      trace.skip_bad(wrong.what());
    }
  }
}

}  // namespace

std::string_view csv_format_of(const CsvReader& first_row) {
  if (is_pai_row(first_row.fields()) || is_pai_header(first_row.fields())) return "pai";
  const auto table = std::find_if(kTables.begin(), kTables.end(),
                                  [&](const Table& each) { return has_columns(each, first_row.fields()); });
  if (table == kTables.end()) return {};
  // Helios and Acme name the columns that are read alike, but for Helios' virtual clusters.
  const bool helios = table->format == "acme" && place_of("vc", first_row.fields());
  return helios ? "helios" : table->format;
}

std::string csv_columns_of(std::string_view format) {
  if (format == "pai") return fmt::format("{}", fmt::join(kPaiColumns, ","));
  const auto table =
      std::find_if(kTables.begin(), kTables.end(), [&](const Table& each) { return each.format == format; });
  std::vector<std::string_view> names;
  for (const auto role : kRoles) {
    const std::string_view name = (*table).*role;
    if (!name.empty() && !name.starts_with('?')) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ","));
}

void read_csv(CsvReader& rows, std::string_view format, bool lenient, TraceBuilder& trace) {
  if (format == "pai") {
    PaiReader pai(rows, trace);
    read_rows(rows, !is_pai_header(rows.fields()), lenient, trace, [&] { pai.read_row(); });
    pai.finish();
  } else {
    const auto table =
        std::find_if(kTables.begin(), kTables.end(), [&](const Table& each) { return each.format == format; });
    TableReader reader(*table, rows, trace);
    read_rows(rows, false, lenient, trace, [&] { reader.read_row(); });
  }
  trace.count_blank(rows.blank_lines());
}

void read_named_csv(CsvReader& rows, const std::map<std::string, std::string>& columns, bool lenient,
                    TraceBuilder& trace) {
  Table table{};
  for (const auto& [word, name] : columns) {
    const auto role = std::find(kRoleWords.begin(), kRoleWords.end(), word);
    if (role == kRoleWords.end())
      throw error("--columns: '{}' is nothing that a job has; give {}", word, fmt::join(kRoleWords, ", "));
    if (!place_of(name, rows.fields()))
      throw error_at(rows.file(), rows.line(), fmt::format("no column is named '{}'", name),
                     fmt::format("give one of {}", shortened(fmt::format("{}", fmt::join(rows.fields(), ", ")), 500)));
    table.*kRoles[static_cast<std::size_t>(role - kRoleWords.begin())] = name;
  }
  if (table.submit.empty() || (table.duration.empty() && (table.start.empty() || table.end.empty())))
    throw error(
        "--columns: when jobs are submitted and how long they run is not named; give submit=NAME,duration=NAME, or "
        "start=NAME,end=NAME in place of the duration");
  TableReader reader(table, rows, trace);
  read_rows(rows, false, lenient, trace, [&] { reader.read_row(); });
  trace.count_blank(rows.blank_lines());
}

}  // namespace braid::traces
