#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/support/options.h"
#include "traces/read_trace.h"

namespace braid::cli {

/// --format, --columns and --lenient. The command line fills `options` in; it must outlive the parsing.
void add_trace_reading(CommandLine& line, traces::ReadOptions& options);

/// "submit=NAME,gpus=NAME": braid's words for what a job has, and the names of a file's columns. Throws Error for
/// anything else.
std::map<std::string, std::string> parse_columns(const std::string& text);

/// "without a GPU", "never started", ...
std::string_view name_of(traces::Skipped why);

/// What the reader counted, where there is something to say; the first bad row in full.
void print_irregularities(const traces::Trace& trace);

/// "1:8,2:1" or "1": counts and how often, relative to one another. `flag` is for messages.
std::vector<std::pair<std::int32_t, double>> parse_weights(const std::string& text, const std::string& flag);

}  // namespace braid::cli
