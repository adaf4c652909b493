#pragma once

#include <functional>
#include <vector>

#include "base/steady_clock.h"
#include "costmodel/work/operators.h"

namespace braid::exec {

/// Hears of every operator that a stage runs. Between operators it lets the messages under way go on, which on CPU
/// ranks move only while MPI is called.
class Probe {
 public:
  struct Record {
    costmodel::OperatorCall call;
    double seconds = 0;
  };

  /// Called between operators; may be empty.
  std::function<void()> between;
  /// When set, `records` grows by one entry an operator.
  bool recording = false;
  std::vector<Record> records;

  /// That operator has run, in pieces.
  void hear(const costmodel::OperatorCall& call, double seconds) {
    if (recording) records.push_back({call, seconds});
    if (between) between();
  }

  /// Runs `work` as that operator.
  template <typename Work>
  void run(const costmodel::OperatorCall& call, const Work& work) {
    if (!recording) {
      work();
    } else {
      const SteadyClock::time_point start = SteadyClock::now();
      work();
      records.push_back({call, seconds_since(start)});
    }
    if (between) between();
  }
};

}  // namespace braid::exec
