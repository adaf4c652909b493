#pragma once

#include "base/source_text.h"
#include "traces/trace_builder.h"

namespace braid::traces {

/// Philly's cluster_job_log: an array of jobs, taken one at a time as the text goes by. Throws Error "FILE:LINE: ..."
/// with the line where the job at fault begins. Text that is no JSON is an error even when `lenient`.
void read_philly_json(SourceText& text, bool lenient, TraceBuilder& trace);

}  // namespace braid::traces
