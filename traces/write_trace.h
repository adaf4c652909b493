#pragma once

#include <iosfwd>

#include "traces/trace.h"

namespace braid::traces {

/// The jobs as CSV of the format `braid`, times to the millisecond; what no job has (virtual clusters, priorities,
/// deadlines, budgets) has no column.
void write_trace(const Trace& trace, std::ostream& out);

}  // namespace braid::traces
