#pragma once

#include "base/source_text.h"
#include "traces/trace_builder.h"

namespace braid::traces {

/// Philly's cluster_job_log, taken one job at a time as the text goes by: a list of jobs, jobs one after another, or an
/// object of which one field holds the list. Throws Error "FILE:LINE: ..." with the line where the job at fault begins.
/// Text that is no JSON, and a log in which no job has attempts, is an error even when `lenient`.
void read_philly_json(SourceText& text, bool lenient, TraceBuilder& trace);

}  // namespace braid::traces
