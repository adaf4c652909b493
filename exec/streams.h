#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/steady_clock.h"
#include "base/units.h"
#include "exec/buffer.h"
#include "exec/ranks/communicator.h"
#include "planner/program/program.h"
#include "planner/program/timeline.h"

namespace braid::exec {

/// What goes on in a rank's streams, Program after Program: what its device computes, and the messages and collectives
/// beside that. It starts what can start, knows when each instruction ran, and has others wait for it.
///
/// Where devices tell each other their numbers they are told at once and wait for one another by events; else the host
/// starts what it tells once its device has come so far, in the order of the calls, so that ranks meet in collectives
/// in one order.
class Streams {
 public:
  /// All outlive it; `zero` is what its times count from, in nanoseconds of the steady clock.
  Streams(kernels::Device& device, Communicator& communicator, std::int64_t zero)
      : device_(device), communicator_(communicator), zero_(zero) {}

  /// How long the rank waits while nothing comes on, before it throws Failure.
  void set_patience(double seconds) { patience_ = seconds; }

  /// From here on instructions are those of that list, or of lists before it.
  void begin(const planner::StageProgram& list);

  using Start = std::function<std::unique_ptr<Request>(const kernels::Event& after)>;
  /// Starts what `start` returns as that instruction, once the device has ended all that it was told until now. `kept`
  /// stays until it has ended.
  void start(planner::InstructionId id, Start start, Buffer kept = {});
  /// The same of what the host alone tells.
  void start_by_host(planner::InstructionId id, Start start);
  /// Has the host call `work` in the same order, as no instruction.
  void start_later(std::function<void(const kernels::Event& ready)> work);

  /// The device was told of a compute instruction, between two events; and bytes that buffers hold then.
  void computing(planner::InstructionId id, std::shared_ptr<kernels::Event> begun,
                 std::shared_ptr<kernels::Event> ended, Bytes held);

  /// Starts what can start, and stamps what has ended.
  void poll();
  /// The same, for those who ask again and again; throws Failure once patience is at an end.
  void wait_a_little();
  /// Something was told: patience begins anew.
  void came_on() { came_on_ = SteadyClock::now(); }
  /// What the device is told from here on comes after that instruction. What the device computes does in any case, and
  /// so does all that starts later; messages and collectives may have to be waited for.
  void wait_for(planner::InstructionId id);
  /// Until all that was begun has ended.
  void drain();

  /// Those that ended and were not told before, in list order; what has not ended is told another time.
  std::vector<planner::Event> take_events(planner::StageIndex stage);
  /// What buffers held after each compute instruction that has ended since the last call.
  std::vector<planner::MemorySample> take_memory();

 private:
  /// A message or collective that has started, or that devices were told of.
  struct UnderWay {
    planner::InstructionId id = 0;
    std::unique_ptr<Request> request;
    std::shared_ptr<kernels::Event> ready;  // of devices: when it can start
  };
  struct ToStart {
    std::unique_ptr<kernels::Event> ready;
    std::function<void(const kernels::Event& ready)> start;
  };
  struct Computing {
    planner::InstructionId id = 0;
    std::shared_ptr<kernels::Event> begun, ended;
    Bytes held = 0;
  };
  /// When an instruction ran; below 0: not yet.
  struct Span {
    Nanoseconds started = -1;
    Nanoseconds ended = -1;
  };
  /// Of an earlier Program's list.
  struct Earlier {
    planner::Instruction instruction;
    Span span;
  };

  void stamp_computed();
  void stamp_under_way();
  planner::InstructionId id_of(std::size_t place) const {
    return list_->first_id + static_cast<planner::InstructionId>(place);
  }
  /// Whether the device computes it; true also of what has ended and is not told.
  bool computes(planner::InstructionId id) const;
  /// Null: of an earlier Program, and it has ended.
  Span* span_of(planner::InstructionId id);
  /// When that instruction ends, where devices go on with it; else null.
  kernels::Event* event_of(planner::InstructionId id) const;
  planner::Event event(planner::StageIndex stage, planner::InstructionId id, const planner::Instruction& instruction,
                       Span span);
  Nanoseconds at(SteadyClock::time_point time) const;

  kernels::Device& device_;
  Communicator& communicator_;
  std::int64_t zero_;
  double patience_ = 3600;  // seconds
  SteadyClock::time_point came_on_ = SteadyClock::now();

  const planner::StageProgram* list_ = nullptr;
  std::vector<Span> spans_;                            // of the list
  std::map<planner::InstructionId, Earlier> earlier_;  // of earlier lists, not told
  std::vector<UnderWay> under_way_;
  std::deque<ToStart> to_start_;
  std::deque<Computing> computing_;
  std::map<planner::InstructionId, Buffer> kept_;
  std::vector<planner::MemorySample> memory_;
  std::array<Nanoseconds, planner::kStreamCount> free_{};  // when all that was told of a stream had ended
};

}  // namespace braid::exec
