#include "traces/read_trace.h"

#include <algorithm>
#include <array>
#include <istream>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/file_form.h"
#include "base/source_text.h"
#include "base/utf8.h"
#include "traces/read_csv.h"
#include "traces/read_philly_json.h"

namespace braid::traces {
namespace {

constexpr std::array<TraceFormat, 9> kFormats = {{
    {"braid", "CSV: submit_s,duration_s and, as wanted, job_id,gpus,vc,priority,deadline_s,budget_gpu_hours"},
    {"philly-json", "Microsoft Philly's cluster_job_log: a list, a job a line, or an object that holds the list"},
    {"philly-csv", "the same as CSV: timestamp,duration,num_gpus,gpu_time,cluster"},
    {"itp", "Microsoft ITP as ElasticFlow carries it: job_id,submission_time,duration,num_gpu"},
    {"helios", "SenseTime Helios' cluster_log.csv"},
    {"pai", "Alibaba PAI's pai_task_table (2020), with or without a line of column names"},
    {"openb", "Alibaba's openb_pod_list (2023)"},
    {"acme", "Shanghai AI Lab's Acme: trace_seren.csv, trace_kalos.csv"},
    {"jobs", "CSV of plain names, as simulators have: submit_time, num_gpus and duration, or start_time and end_time"},
}};

constexpr std::size_t kMostShown = 500;  // bytes of a row in a message

std::string names() {
  std::vector<std::string_view> all;
  for (const TraceFormat& format : kFormats) all.push_back(format.name);
  return fmt::format("{}", fmt::join(all, ", "));
}

Trace read_json(SourceText& text, bool lenient) {
  TraceBuilder trace(text.file(), "philly-json");
  read_philly_json(text, lenient, trace);
  return trace.finish();
}

}  // namespace

std::span<const TraceFormat> trace_formats() {
  return kFormats;
}

Trace read_trace(const std::filesystem::path& path, const ReadOptions& options) {
  const std::string& format = options.format;
  const bool known =
      std::any_of(kFormats.begin(), kFormats.end(), [&](const auto& each) { return each.name == format; });
  if (!format.empty() && !known) throw error("trace format '{}' is not known; give one of {}", format, names());
  if (!format.empty() && !options.columns.empty())
    throw error("both a format and columns are given; a format has its own columns, keep one of them");
  SourceText text(path);
  if (const auto foreign = foreign_form(text.beginning(), path.string()))
    throw error("{}: is {}, not text; {}", path.string(), foreign->what, foreign->remedy);
  const char first = text.first_character();
  const bool json = first == '[' || first == '{';
  if (json && !options.columns.empty())
    throw error("{}: is JSON, and columns are of CSV; leave them out", path.string());
  if (format == "philly-json" || (format.empty() && json)) return read_json(text, options.lenient);
  std::istream in(&text);
  CsvReader rows(in, path.string());
  if (!rows.next()) throw error("{}: is empty; give a trace", path.string());
  if (!options.columns.empty()) {
    TraceBuilder trace(path.string(), "columns");
    read_named_csv(rows, options.columns, options.lenient, trace);
    return trace.finish();
  }
  const std::string_view found = csv_format_of(rows);
  if (found.empty())
    throw error(
        "{}:{}: its columns '{}' are those of no known trace; give one of {}, or say which they are with "
        "--columns submit=NAME,duration=NAME,gpus=NAME",
        path.string(), rows.line(), shortened(fmt::format("{}", fmt::join(rows.fields(), ",")), kMostShown), names());
  if (!format.empty() && found != format)
    throw error("{}:{}: is of format {}, not {}, whose columns are {}", path.string(), rows.line(), found, format,
                csv_columns_of(format));
  TraceBuilder trace(path.string(), std::string(found));
  read_csv(rows, found, options.lenient, trace);
  return trace.finish();
}

}  // namespace braid::traces
