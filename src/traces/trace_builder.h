#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "traces/trace.h"

namespace braid::traces {

/// Gathers the jobs of a file.
class TraceBuilder {
 public:
  TraceBuilder(std::string source, std::string format);

  /// A moment of the file: bare seconds, or a date. Throws Error for neither, and where a file has both.
  double moment(std::string_view text, std::string_view what);

  void add(Job job, std::string_view virtual_cluster);
  void skip(Skipped why);
  void skip_bad(std::string_view message);
  void count_blank(std::int64_t lines) { trace_.irregularities.blank_lines += lines; }

  /// The jobs in order, from the trace's zero on. Throws Error when there are none.
  Trace finish();

 private:
  Trace trace_;
  std::unordered_map<std::string, std::int32_t> virtual_clusters_;
  bool dates_ = false, seconds_ = false;
};

/// Empty, or one of the words that stand for nothing: none, nan, nat, null, in any case.
bool is_missing(std::string_view text);

}  // namespace braid::traces
