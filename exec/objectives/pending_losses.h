#pragma once

#include <deque>
#include <vector>

#include "exec/objectives/objective.h"
#include "kernels/device.h"

namespace braid::exec {

/// Losses of rows on their way from the device to their objectives, which are told in the order in which the rows were
/// scored. Outlived by the objectives.
class PendingLosses {
 public:
  struct Row {
    SampleRows sequence;
    float weight = 1;
  };

  explicit PendingLosses(kernels::Device& device) : device_(device) {}
  PendingLosses(const PendingLosses&) = delete;
  PendingLosses& operator=(const PendingLosses&) = delete;
  ~PendingLosses();

  /// losses [T], which the device has been told to compute, of `rows` [T].
  void add(kernels::ConstVector losses, std::vector<Row> rows, Objective& objective);
  /// Tells of those that are there.
  void look();
  /// Waits for all, and tells of them.
  void settle();

 private:
  struct Pending {
    std::vector<float> losses;
    std::vector<Row> rows;
    Objective* objective = nullptr;
    std::unique_ptr<kernels::Event> there;
  };

  kernels::Device& device_;
  std::deque<Pending> pending_;
};

}  // namespace braid::exec
