#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/csv.h"
#include "traces/trace_builder.h"

namespace braid::traces {

inline constexpr std::string_view kPaiColumns =
    "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type";

bool is_pai_header(std::span<const std::string_view> fields);
bool is_pai_row(std::span<const std::string_view> fields);

/// Alibaba PAI's pai_task_table (2020), whose rows are the roles of a job: `inst_num` instances of `plan_gpu`
/// hundredths of a GPU each. It tells when roles started, not when their job was submitted.
class PaiReader {
 public:
  PaiReader(CsvReader& rows, TraceBuilder& trace) : rows_(rows), trace_(trace) {}

  void read_row();
  /// Hands over the jobs that the rows made up.
  void finish();

 private:
  struct PaiJob {
    double gpus = 0, start = 0, end = 0;
    bool started = false, ended = true;
  };

  CsvReader& rows_;
  TraceBuilder& trace_;
  std::unordered_map<std::string, std::size_t> places_;
  std::vector<std::pair<std::string, PaiJob>> jobs_;
};

}  // namespace braid::traces
