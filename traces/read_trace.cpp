#include "traces/read_trace.h"

#include <algorithm>
#include <array>
#include <istream>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/source_text.h"
#include "traces/read_csv.h"
#include "traces/read_philly_json.h"

namespace braid::traces {
namespace {

constexpr std::array<TraceFormat, 8> kFormats = {{
    {"braid", "CSV: submit_s,duration_s and, as wanted, job_id,gpus,vc,priority,deadline_s,budget_gpu_hours"},
    {"philly-json", "Microsoft Philly's cluster_job_log"},
    {"philly-csv", "the same as CSV: timestamp,duration,num_gpus,gpu_time,cluster"},
    {"itp", "Microsoft ITP as ElasticFlow carries it: job_id,submission_time,duration,num_gpu"},
    {"helios", "SenseTime Helios' cluster_log.csv"},
    {"pai", "Alibaba PAI's pai_task_table (2020), with or without a line of column names"},
    {"openb", "Alibaba's openb_pod_list (2023)"},
    {"acme", "Shanghai AI Lab's Acme: trace_seren.csv, trace_kalos.csv"},
}};

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
  SourceText text(path);
  if (format == "philly-json" || (format.empty() && text.first_character() == '['))
    return read_json(text, options.lenient);
  std::istream in(&text);
  CsvReader rows(in, path.string());
  if (!rows.next()) throw error("{}: is empty; give a trace", path.string());
  const std::string_view found = csv_format_of(rows);
  if (found.empty())
    throw error("{}:{}: its columns '{}' are those of no known trace; give one of {}, or submit_s,duration_s",
                path.string(), rows.line(), fmt::join(rows.fields(), ","), names());
  if (!format.empty() && found != format)
    throw error("{}:{}: is of format {}, not {}, whose columns are {}", path.string(), rows.line(), found, format,
                csv_columns_of(format));
  TraceBuilder trace(path.string(), std::string(found));
  read_csv(rows, found, options.lenient, trace);
  return trace.finish();
}

}  // namespace braid::traces
