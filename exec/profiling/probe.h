#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/steady_clock.h"
#include "costmodel/work/operators.h"
#include "kernels/device.h"

namespace braid::exec {

/// Hears of every operator that a stage runs, and times it by the device's own events, so that one that runs later than
/// it is called is timed where it runs. Between operators it lets the messages under way go on, which on CPU ranks move
/// only while MPI is called.
class Probe {
 public:
  struct Record {
    costmodel::OperatorCall call;
    double seconds = 0;
  };
  /// A stretch of the compute stream, of whose time `share` is one operator's.
  struct Stretch {
    std::shared_ptr<kernels::Event> begun, ended;
    double share = 1;
  };

  explicit Probe(kernels::Device& device) : device_(device) {}

  /// Called between operators; may be empty.
  std::function<void()> between;

  /// From here on every operator is timed, or none is. What was timed before is forgotten.
  void record(bool on) {
    recording_ = on;
    heard_.clear();
  }
  bool recording() const { return recording_; }

  /// Where the stream is now; null unless recording.
  std::shared_ptr<kernels::Event> mark() { return recording_ ? device_.mark() : nullptr; }

  /// That operator has been called, in pieces.
  void hear(const costmodel::OperatorCall& call, std::vector<Stretch> stretches) {
    if (recording_) heard_.push_back({call, std::move(stretches)});
    if (between) between();
  }

  /// Calls `work` as that operator.
  template <typename Work>
  void run(const costmodel::OperatorCall& call, const Work& work) {
    const std::shared_ptr<kernels::Event> begun = mark();
    work();
    hear(call, {{begun, mark()}});
  }

  /// All that was heard and not taken yet, in the order of the calls. Waits for the device.
  std::vector<Record> take_records() {
    device_.wait();
    std::vector<Record> records;
    for (const Heard& heard : heard_) {
      Record& record = records.emplace_back(heard.call);
      for (const Stretch& stretch : heard.stretches)
        record.seconds += stretch.share * seconds_between(*stretch.begun->ended(), *stretch.ended->ended());
    }
    heard_.clear();
    return records;
  }

 private:
  struct Heard {
    costmodel::OperatorCall call;
    std::vector<Stretch> stretches;
  };

  kernels::Device& device_;
  bool recording_ = false;
  std::vector<Heard> heard_;
};

}  // namespace braid::exec
