#include <algorithm>
#include <map>
#include <ostream>
#include <set>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/program/timeline.h"

namespace braid::planner {
namespace {

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump();
}

/// The format counts in microseconds; three decimals keep nanoseconds.
std::string microseconds(Nanoseconds time) {
  return fmt::format("{}.{:03}", time / 1000, time % 1000);
}

class TraceWriter {
 public:
  TraceWriter(const Program& program, const Timeline& timeline, std::span<const std::string> task_names,
              std::ostream& out)
      : program_(program), timeline_(timeline), task_names_(task_names), out_(out) {}

  void write() {
    out_ << "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
    name_rows();
    for (const Event& event : timeline_.events) write_event(event);
    for (const MemorySample& sample : timeline_.memory) {
      line(fmt::format(R"({{"ph": "C", "name": "memory", "pid": {}, "ts": {}, "args": {{"bytes": {}}}}})", sample.rank,
                       microseconds(sample.time), sample.bytes));
    }
    out_ << "\n]}\n";
  }

 private:
  void line(const std::string& text) {
    out_ << (first_ ? "\n" : ",\n") << text;
    first_ = false;
  }

  void name_rows() {
    std::set<std::pair<std::int32_t, Stream>> rows;
    for (const Event& event : timeline_.events) {
      if (rows.insert({event.rank, event.stream}).second) {
        line(fmt::format(R"({{"ph": "M", "name": "thread_name", "pid": {}, "tid": {}, "args": {{"name": "{}"}}}})",
                         event.rank, static_cast<int>(event.stream), name(event.stream)));
      }
    }
    for (const StageProgram& stage : program_.stages) {
      for (const std::int32_t rank : stage.ranks) {
        line(fmt::format(
            R"({{"ph": "M", "name": "process_name", "pid": {}, "args": {{"name": "rank {}: replica {} stage {}"}}}})",
            rank, rank, stage.replica, stage.stage));
      }
    }
  }

  const Instruction* instruction_of(const Event& event) const {
    const StageProgram& stage = program_.stages[static_cast<std::size_t>(event.stage)];
    const InstructionId place = event.instruction - stage.first_id;
    if (place < 0 || static_cast<std::size_t>(place) >= stage.instructions.size()) return nullptr;
    return &stage.instructions[static_cast<std::size_t>(place)];
  }

  std::string tasks_of(MicrobatchId id) const {
    std::set<TaskIndex> tasks;
    for (const Segment& segment : program_.microbatch(id).segments) tasks.insert(segment.task);
    std::string text;
    for (const TaskIndex task : tasks) text += (text.empty() ? "" : "+") + task_names_[static_cast<std::size_t>(task)];
    return text;
  }

  void write_event(const Event& event) {
    const Instruction* instruction = instruction_of(event);
    MicrobatchId microbatch = kNone;
    std::string label(name(event.kind));
    std::string arguments = fmt::format(R"("id": {})", event.instruction);
    if (instruction) {
      const StageProgram& stage = program_.stages[static_cast<std::size_t>(event.stage)];
      microbatch = instruction->microbatch;
      if (instruction->parts.count > 0) microbatch = stage.parts_of(*instruction)[0].microbatch;
      if (microbatch != kNone) {
        const std::string tasks = tasks_of(microbatch);
        label += " " + tasks;
        arguments += fmt::format(R"(, "microbatch": {}, "tasks": {}, "tokens": {})", microbatch, json_text(tasks),
                                 program_.microbatch(microbatch).computed_tokens());
      }
      if (instruction->task != kNone) label += " " + task_names_[static_cast<std::size_t>(instruction->task)];
      if (instruction->bytes > 0) arguments += fmt::format(R"(, "bytes": {})", instruction->bytes);
    }
    line(fmt::format(
        R"({{"ph": "X", "name": {}, "cat": "{}", "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{{}}}}})",
        json_text(label), name(event.kind), event.rank, static_cast<int>(event.stream), microseconds(event.start),
        microseconds(event.end - event.start), arguments));
    if (!instruction || instruction->channel == kNone) return;
    const std::string flow =
        fmt::format("{}-{}-{}", instruction->channel, microbatch,
                    event.rank - program_.stages[static_cast<std::size_t>(event.stage)].ranks.front());
    const bool sends = is_send(event.kind);
    line(fmt::format(
        R"({{"ph": "{}", "name": "message", "cat": "message", "id": {}, "pid": {}, "tid": {}, "ts": {}{}}})",
        sends ? "s" : "f", json_text(flow), event.rank, static_cast<int>(event.stream),
        microseconds(sends ? event.start : event.end), sends ? "" : R"(, "bp": "e")"));
  }

  const Program& program_;
  const Timeline& timeline_;
  std::span<const std::string> task_names_;
  std::ostream& out_;
  bool first_ = true;
};

}  // namespace

void write_trace(const Program& program, const Timeline& timeline, std::span<const std::string> task_names,
                 std::ostream& out) {
  TraceWriter(program, timeline, task_names, out).write();
}

}  // namespace braid::planner
