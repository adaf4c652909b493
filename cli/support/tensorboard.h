#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "base/appended_file.h"
#include "exec/trainer.h"

namespace braid::cli {

/// A file of TensorBoard's events: records of a length, its masked CRC-32C, an Event (tensorflow/core/util/event.proto)
/// and its masked CRC-32C. A folder may hold several, of a run that was gone on with.
class EventFile {
 public:
  /// Makes `folder` and a file there whose name no other process takes. `seconds` since 1970 are when it begins. What
  /// cannot be written waits (AppendedFile). The file is open while it is written to alone: a run may have many.
  EventFile(const std::filesystem::path& folder, double seconds);

  void add_scalar(std::string_view tag, std::int64_t step, double value, double seconds);
  /// Writes what was added, for others to read.
  void flush();

  static std::uint32_t masked_crc(std::string_view bytes);

 private:
  void add_record(const std::string& event);

  AppendedFile file_;
  std::string added_;  // and not written
};

/// A run's steps as TensorBoard shows them: folder/TASK, of each task its loss, learning rate, gradient norm and data
/// tokens a second, of pairs the rewards' margin and accuracy, by step; of evaluations
/// those with "eval_" before.
class TensorBoardLog {
 public:
  TensorBoardLog(std::filesystem::path folder, const workload::Workload& workload)
      : folder_(std::move(folder)), workload_(workload) {}

  void on_window(const exec::WindowReport& report);
  void on_evaluation(const exec::EvaluationReport& report);

 private:
  EventFile& file_of(planner::TaskIndex task, double now);

  std::filesystem::path folder_;
  const workload::Workload& workload_;
  std::map<planner::TaskIndex, EventFile> files_;  // of tasks that have taken a step here
};

}  // namespace braid::cli
