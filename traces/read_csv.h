#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/csv.h"
#include "traces/read_trace.h"
#include "traces/trace_builder.h"

namespace braid::traces {

/// The format whose columns the row (a file's first) names; empty when it is none's. Upper case, blanks and '_' in
/// names make no difference. PAI's tables have no such row and are told by their fields.
std::string_view csv_format_of(const CsvReader& first_row);

/// What makes up a row of a format, for messages.
std::string csv_columns_of(std::string_view format);

/// The rows of a file whose first has been read.
void read_csv(CsvReader& rows, std::string_view format, bool lenient, TraceBuilder& trace);

/// The same for a file of any names, the ones that `columns` gives for what a job has: submit and duration, or submit,
/// start and end, and as wanted id, gpus, vc, priority, deadline, budget. Throws Error for another word than these,
/// where those are missing, and for a name that no column of the file has.
void read_named_csv(CsvReader& rows, const std::map<std::string, std::string>& columns, bool lenient,
                    TraceBuilder& trace);

}  // namespace braid::traces
