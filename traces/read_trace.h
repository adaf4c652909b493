#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "traces/trace.h"

namespace braid::traces {

struct TraceFormat {
  std::string_view name;
  std::string_view what;
};

/// The formats that read_trace knows.
std::span<const TraceFormat> trace_formats();

struct ReadOptions {
  std::string format;    ///< of trace_formats(); empty: told from the file's beginning
  bool lenient = false;  ///< a row that cannot be understood is counted, not an error
  /// In place of a format: a CSV file's own names for what a job has, by braid's words for it (read_csv.h).
  std::map<std::string, std::string> columns = {};
};

/// The jobs of a trace. The rules, the same for every format:
/// - a job's duration is its time in service: the sum of its attempts where the file lists them, else the column that
///   says so, else end - start;
/// - jobs without a GPU, never started, or without an end are skipped and counted; of several attempts one without a
///   start or an end is left out and counted;
/// - a GPU shared in part counts as one; a job of several kinds of tasks (PAI) has the GPUs of all of them, from the
///   first start to the last end;
/// - rows may be in any order; jobs of one instant stay in the order of their rows;
/// - times are seconds: those of the file, or since the midnight before the first submission where it has dates, by the
///   clock on the wall.
/// The file is read once, as a stream: a pipe will do, and memory goes with its jobs, not its bytes. Throws Error
/// "FILE:LINE: ..." for a row that cannot be understood, and Error for a file that is of no known format, packed or
/// without a job.
Trace read_trace(const std::filesystem::path& path, const ReadOptions& options = {});

}  // namespace braid::traces
