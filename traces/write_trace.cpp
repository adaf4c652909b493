#include "traces/write_trace.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <ostream>

#include <fmt/format.h>

#include "base/csv.h"

namespace braid::traces {
namespace {

template <typename Has>
bool any(const Trace& trace, const Has& has) {
  return std::any_of(trace.jobs.begin(), trace.jobs.end(), has);
}

/// Nothing for infinity.
std::string limit(double value) {
  return std::isinf(value) ? "" : fmt::format("{:.3f}", value);
}

}  // namespace

void write_trace(const Trace& trace, std::ostream& out) {
  const bool clusters = any(trace, [](const Job& job) { return job.virtual_cluster >= 0; });
  const bool priorities = any(trace, [](const Job& job) { return job.priority != 0; });
  const bool deadlines = any(trace, [](const Job& job) { return !std::isinf(job.deadline_seconds); });
  const bool budgets = any(trace, [](const Job& job) { return !std::isinf(job.budget); });
  fmt::memory_buffer text;
  const auto put = std::back_inserter(text);
  fmt::format_to(put, "job_id,submit_s,duration_s,gpus{}{}{}{}\n", clusters ? ",vc" : "", priorities ? ",priority" : "",
                 deadlines ? ",deadline_s" : "", budgets ? ",budget_gpu_hours" : "");
  for (const Job& job : trace.jobs) {
    fmt::format_to(put, "{},{:.3f},{:.3f},{}", csv_field(job.id), job.submit_seconds, job.duration_seconds, job.gpus);
    if (clusters)
      fmt::format_to(put, ",{}",
                     job.virtual_cluster < 0
                         ? ""
                         : csv_field(trace.virtual_clusters[static_cast<std::size_t>(job.virtual_cluster)]));
    if (priorities) fmt::format_to(put, ",{}", job.priority);
    if (deadlines) fmt::format_to(put, ",{}", limit(job.deadline_seconds));
    if (budgets) fmt::format_to(put, ",{}", limit(job.budget));
    text.push_back('\n');
    if (text.size() > (1U << 20)) {
      out.write(text.data(), static_cast<std::streamsize>(text.size()));
      text.clear();
    }
  }
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
}

}  // namespace braid::traces
