#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/csv.h"
#include "traces/trace_builder.h"

namespace braid::traces {

inline constexpr std::array<std::string_view, 10> kPaiColumns = {"job_name",   "task_name", "inst_num", "status",
                                                                 "start_time", "end_time",  "plan_cpu", "plan_mem",
                                                                 "plan_gpu",   "gpu_type"};

bool is_pai_header(std::span<const std::string_view> fields);
bool is_pai_row(std::span<const std::string_view> fields);

/// Alibaba PAI's pai_task_table (2020), whose rows are the roles of a job: `inst_num` instances of `plan_gpu`
/// hundredths of a GPU each. It tells when roles started, not when their job was submitted.
class PaiReader {
 public:
  PaiReader(CsvReader& rows, TraceBuilder& trace);

  /// Throws Error "FILE:LINE: ..." for a row that cannot be understood, none of which is then in the jobs.
  void read_row();
  /// Hands over the jobs that the rows made up.
  void finish();

 private:
  struct Role {
    double gpus = 0;
    std::optional<double> start, end;
  };
  struct PaiJob {
    double gpus = 0;
    std::optional<double> start, end;  // the first start, the last end
    bool unfinished = false;           // some role has no end
  };

  Role parsed_role() const;
  static void merge(const Role& role, PaiJob& job);

  CsvReader& rows_;
  TraceBuilder& trace_;
  std::unordered_map<std::string, std::size_t> places_;
  std::vector<std::pair<std::string, PaiJob>> jobs_;
};

}  // namespace braid::traces
