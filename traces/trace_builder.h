#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "traces/trace.h"

namespace braid::traces {

/// Of one job; more are taken for a mistake.
inline constexpr std::int64_t kMostGpus = 1'000'000;

/// Gathers the jobs of a file, row by row: what moment() is given belongs to the row that the next add() or skip()
/// ends.
class TraceBuilder {
 public:
  TraceBuilder(std::string source, std::string format);

  /// A moment of the row: bare seconds, or a date. Throws Error for neither, and where the row or the jobs added before
  /// it have the other. A row that is skipped does not decide which of them the file has.
  double moment(std::string_view text, std::string_view what);

  void add_unread_column(std::string_view name) { trace_.unread_columns.emplace_back(name); }
  void add(Job job, std::string_view virtual_cluster);
  void skip(Skipped why);
  void skip_bad(std::string_view message);
  void count_attempts_left_out(std::int64_t attempts) { trace_.irregularities.attempts_left_out += attempts; }
  void count_blank(std::int64_t lines) { trace_.irregularities.blank_lines += lines; }

  /// The jobs in order, from the trace's zero on. Throws Error when there are none.
  Trace finish();

 private:
  Trace trace_;
  std::unordered_map<std::string, std::int32_t> virtual_clusters_;
  enum class Clock : std::uint8_t { unknown, seconds, dates };
  Clock clock_ = Clock::unknown;      // of the jobs added
  Clock row_clock_ = Clock::unknown;  // of those, and of the row being read
};

/// Empty, or one of the words that stand for nothing: none, nan, nat, null, in any case.
bool is_missing(std::string_view text);

}  // namespace braid::traces
