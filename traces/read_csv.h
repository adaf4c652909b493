#pragma once

#include "base/csv.h"
#include "traces/read_trace.h"
#include "traces/trace_builder.h"

namespace braid::traces {

/// The format whose columns the row (a file's first) names; empty when it is none's. PAI's tables have no such row and
/// are told by their fields.
std::string_view csv_format_of(const CsvReader& first_row);

/// What makes up a row of a format, for messages.
std::string csv_columns_of(std::string_view format);

/// The rows of a file whose first has been read.
void read_csv(CsvReader& rows, std::string_view format, bool lenient, TraceBuilder& trace);

}  // namespace braid::traces
