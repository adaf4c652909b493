#pragma once

#include <iosfwd>
#include <string>

#include "traces/trace_builder.h"

namespace braid::traces {

/// Philly's cluster_job_log: an array of jobs, taken one at a time as the text goes by. `file` is for messages.
void read_philly_json(std::istream& in, const std::string& file, bool lenient, TraceBuilder& trace);

}  // namespace braid::traces
