#pragma once

#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "planner/program/program.h"

namespace braid::planner {

/// One instruction as it ran, in nanoseconds since the Timeline's zero.
struct Event {
  std::int32_t rank = 0;
  StageIndex stage = 0;
  Stream stream = Stream::compute;
  Kind kind = Kind::forward;
  InstructionId instruction = 0;
  Nanoseconds start = 0;
  Nanoseconds end = 0;
  bool operator==(const Event&) const = default;
};

/// A counter's value from `time` on, until its next entry.
struct MemorySample {
  std::int32_t rank = 0;
  Nanoseconds time = 0;
  Bytes bytes = 0;
};

/// What a machine, real or simulated, did with a Program. Events are in the order of (stage, instruction).
struct Timeline {
  std::vector<Event> events;
  std::vector<MemorySample> memory;

  Nanoseconds begin() const;  ///< the first start; 0 when empty
  Nanoseconds end() const;    ///< the last end; 0 when empty
  void shift(Nanoseconds by);
};

/// How long each instruction takes once it starts, per stage in list order. For a send that is its time on the wire,
/// for a collective its time once all have come; a receive's is not read.
struct Durations {
  std::vector<std::vector<Nanoseconds>> stages;
};

/// When things are free again where one slice ends and the next begins.
struct Clocks {
  struct Ended {
    InstructionId id = 0;
    Nanoseconds end = 0;
    bool operator==(const Ended&) const = default;
  };
  std::vector<std::vector<Nanoseconds>> streams;   ///< per stage, per stream
  std::vector<std::vector<Ended>> awaited;         ///< per stage, as in its StageBoundary
  std::vector<std::vector<Nanoseconds>> messages;  ///< per channel, when each message under way arrives
  bool operator==(const Clocks&) const = default;
};

/// Says when a Program's instructions would run. The planner is handed one, so that it needs no simulator of its own.
using Judge = std::function<Timeline(const Program&, const Durations&)>;

/// When the last Step ended; 0 where there is none.
Nanoseconds end_of_steps(std::span<const Event> events);

/// Puts a window's Program and what became of it behind earlier ones, for one trace of several windows: `joined` and
/// `timeline` grow. Times stay as they are. The joined Program is for reading only; its ids are counted anew.
void append_window(const Program& program, const Timeline& ran, Program& joined, Timeline& timeline);

/// Chrome's trace format, which Perfetto reads: process = rank, thread = stream, an arrow from each send to its
/// receive, memory as a counter.
void write_trace(const Program& program, const Timeline& timeline, std::span<const std::string> task_names,
                 std::ostream& out);

}  // namespace braid::planner
