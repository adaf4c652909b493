#include "traces/read_pai.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "base/error.h"

namespace braid::traces {
namespace {

enum Column : std::size_t { kJob, kTask, kInstances, kStatus, kStart, kEnd, kCpu, kMemory, kGpu, kGpuType, kColumns };
static_assert(kPaiColumns.size() == kColumns);

constexpr double kHundredths = 100;

}  // namespace

bool is_pai_header(std::span<const std::string_view> fields) {
  return fields.size() == kColumns && fields[kJob] == kPaiColumns[kJob] && fields[kGpu] == kPaiColumns[kGpu];
}

bool is_pai_row(std::span<const std::string_view> fields) {
  static constexpr std::string_view kStatuses[] = {"Terminated", "Failed", "Running", "Waiting", "Interrupted"};
  return fields.size() == kColumns &&
         std::find(std::begin(kStatuses), std::end(kStatuses), fields[kStatus]) != std::end(kStatuses);
}

PaiReader::PaiReader(CsvReader& rows, TraceBuilder& trace) : rows_(rows), trace_(trace) {
  for (const Column unread : {kTask, kStatus, kCpu, kMemory, kGpuType}) trace.add_unread_column(kPaiColumns[unread]);
}

void PaiReader::read_row() {
  const Role role = parsed_role();
  const std::string_view name = rows_.fields()[kJob];
  const auto [known, is_new] = places_.emplace(name, jobs_.size());
  if (is_new) jobs_.emplace_back(name, PaiJob{});
  merge(role, jobs_[known->second].second);
}

PaiReader::Role PaiReader::parsed_role() const {
  const std::span<const std::string_view> fields = rows_.fields();
  if (fields.size() != kColumns)
    throw error_at(rows_.file(), rows_.line(), fmt::format("{} fields", fields.size()),
                   fmt::format("give {}", fmt::join(kPaiColumns, ",")));
  const double instances = is_missing(fields[kInstances]) ? 1 : rows_.number(kInstances, "inst_num");
  const double gpus = is_missing(fields[kGpu]) ? 0 : rows_.number(kGpu, "plan_gpu") / kHundredths;
  if (instances < 0 || gpus < 0 || instances * gpus > kMostGpus)
    throw error_at(rows_.file(), rows_.line(),
                   fmt::format("{} instances of {} GPUs are no number of GPUs", fields[kInstances], gpus),
                   "mend the row");
  Role role{instances * gpus, std::nullopt, std::nullopt};
  // Roles without a GPU (parameter servers) say nothing of when GPUs were held.
  if (role.gpus == 0) return role;
  if (!is_missing(fields[kStart])) role.start = rows_.number(kStart, "start_time");
  if (!is_missing(fields[kEnd])) role.end = rows_.number(kEnd, "end_time");
  if (role.start && role.end && *role.end < *role.start)
    throw error_at(rows_.file(), rows_.line(),
                   fmt::format("it ends at {}, before its start at {}", *role.end, *role.start), "mend the row");
  return role;
}

void PaiReader::merge(const Role& role, PaiJob& job) {
  job.gpus += role.gpus;
  if (!role.start) return;
  job.start = std::min(job.start.value_or(*role.start), *role.start);
  if (role.end) {
    job.end = std::max(job.end.value_or(*role.end), *role.end);
  } else {
    job.unfinished = true;
  }
}

void PaiReader::finish() {
  for (const auto& [name, recorded] : jobs_) {
    if (recorded.gpus <= 0) {
      trace_.skip(Skipped::without_gpu);
    } else if (!recorded.start) {
      trace_.skip(Skipped::never_ran);
    } else if (recorded.unfinished) {
      trace_.skip(Skipped::unfinished);
    } else {
      Job job;
      job.id = name;
      job.submit_seconds = *recorded.start;
      job.duration_seconds = *recorded.end - *recorded.start;
      job.gpus = static_cast<std::int32_t>(std::ceil(recorded.gpus));
      trace_.add(std::move(job), "");
    }
  }
}

}  // namespace braid::traces
