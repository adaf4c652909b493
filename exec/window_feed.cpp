#include "exec/window_feed.h"

#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "base/error.h"
#include "planner/program/dependency_graph.h"
#include "planner/window/slice_bytes.h"
#include "planner/window/unit_stream.h"
#include "planner/window/window.h"

namespace braid::exec {
namespace {

planner::StageIndex stage_of(int rank, const planner::Program& program) {
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    for (const std::int32_t one : program.stages[s].ranks) {
      if (one == rank) return static_cast<planner::StageIndex>(s);
    }
  }
  throw InternalError(fmt::format("rank {} has no stage", rank));
}

/// Behind `bytes`: the numbers, then how many.
void append_numbers(std::span<const std::int64_t> numbers, std::string& bytes) {
  const std::uint64_t count = numbers.size();
  bytes.append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
  bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
}

/// Takes them off.
std::vector<std::int64_t> take_numbers(std::string_view& bytes) {
  std::uint64_t count = 0;
  BRAID_CHECK(bytes.size() >= sizeof count, "a window has only {} bytes", bytes.size());
  std::memcpy(&count, bytes.data() + bytes.size() - sizeof count, sizeof count);
  bytes.remove_suffix(sizeof count);
  BRAID_CHECK(count <= bytes.size() / sizeof(std::int64_t), "a window has only {} bytes", bytes.size());
  std::vector<std::int64_t> numbers(count);
  const std::size_t size = count * sizeof(std::int64_t);
  if (count > 0) std::memcpy(numbers.data(), bytes.data() + bytes.size() - size, size);
  bytes.remove_suffix(size);
  return numbers;
}

std::string bytes_of(const WindowPart& part) {
  std::string bytes = planner::to_bytes(part.slice);
  append_numbers(part.ahead, bytes);
  std::vector<std::int64_t> turns;  // an instruction, how many, and these
  for (const auto& [id, places] : part.turns) {
    turns.insert(turns.end(), {id, std::ssize(places)});
    turns.insert(turns.end(), places.begin(), places.end());
  }
  append_numbers(turns, bytes);
  return bytes;
}

WindowPart part_from_bytes(std::string_view bytes) {
  WindowPart part;
  const std::vector<std::int64_t> turns = take_numbers(bytes);
  for (auto entry = turns.begin(); entry != turns.end();) {
    const auto first = entry + 2, last = first + entry[1];
    part.turns[entry[0]].assign(first, last);
    entry = last;
  }
  part.ahead = take_numbers(bytes);
  part.slice = planner::slice_from_bytes(bytes);
  return part;
}

}  // namespace

WindowFeed::WindowFeed(const planner::FixedPlan& fixed, const planner::WindowInput& input, std::int64_t first,
                       std::int64_t last, const costmodel::Profile& profile, Communicator& communicator)
    : fixed_(fixed),
      communicator_(communicator),
      streams_(planner::streams(fixed)),
      samples_(input.samples),
      input_{input.workload, samples_, input.stopped, input.cycle, input.taken},
      rules_(planner::verify_context(fixed, input_, 0)),
      last_(last) {
  if (communicator.rank() != 0) return;
  stream_.emplace(fixed_, input_, first, last_);
  if (!profile.entries.empty())
    turns_.emplace(profile, input.workload.backbone, planner::pass_style(fixed, input.workload));
}

WindowFeed::~WindowFeed() {
  if (std::uncaught_exceptions() > 0) return;
  while (!sending_.empty()) {
    if (sending_.front()->done()) {
      sending_.pop_front();
    } else {
      std::this_thread::yield();
    }
  }
}

std::optional<WindowPart> WindowFeed::next() {
  if (communicator_.rank() != 0) return receive();
  if (!begun_) {
    begun_ = true;
    begin_laying_out();
    if (streams_) {
      sent_ = take();
      send(sent_);
    }
  }
  MaybeLaid laid;
  if (streams_) {
    if (!sent_) return std::nullopt;
    laid = std::exchange(sent_, take());
    send(sent_);
  } else {
    laid = take();
    send(laid);
  }
  if (!laid) return std::nullopt;
  return std::move(laid->part);
}

void WindowFeed::stop(planner::TaskIndex task) {
  stopped_.push_back(task);
}

void WindowFeed::end() {
  ended_ = true;
}

WindowFeed::MaybeLaid WindowFeed::lay_out() {
  std::optional<planner::Slice> slice = stream_->next();
  if (!slice) return std::nullopt;
  const std::vector<planner::Violation> violations = planner::verify(slice->program, rules_);
  BRAID_CHECK(violations.empty(), "window {} breaks the rule '{}': {}", slice->window, name(violations[0].rule),
              violations[0].message);
  Laid laid{{std::move(*slice), {}, {}}, {}};
  const planner::Program& program = laid.part.slice.program;
  laid.part.ahead = planner::most_waiting_messages(program);
  std::vector<planner::StageTurns> turns(program.stages.size());
  for (std::size_t stage = 0; turns_ && stage < turns.size(); ++stage)
    turns[stage] = turns_->of(program, static_cast<planner::StageIndex>(stage));
  for (int rank = 1; rank < communicator_.size(); ++rank) {
    const planner::StageIndex stage = stage_of(rank, program);
    laid.parts.push_back(
        bytes_of({planner::part_of(laid.part.slice, stage), laid.part.ahead, turns[static_cast<std::size_t>(stage)]}));
  }
  laid.part.turns = std::move(turns[static_cast<std::size_t>(stage_of(0, program))]);
  return laid;
}

/// Without what was stopped until now.
void WindowFeed::begin_laying_out() {
  for (const planner::TaskIndex task : std::exchange(stopped_, {})) {
    input_.stopped.insert(task);
    stream_->stop(task);
  }
  if (ended_) stream_->end();
  laying_out_ = std::async(std::launch::async, [this] { return lay_out(); });
}

/// What is being laid out; then the next is begun. Where the pipeline drains a window stands by itself, and is laid out
/// anew where a task was stopped meanwhile.
WindowFeed::MaybeLaid WindowFeed::take() {
  MaybeLaid laid = laying_out_.get();
  if (laid && !streams_ && ended_) laid.reset();
  if (laid && !streams_ && !stopped_.empty()) {
    for (const planner::TaskIndex task : std::exchange(stopped_, {})) input_.stopped.insert(task);
    stream_.emplace(fixed_, input_, laid->part.slice.window, last_);
    laid = lay_out();
  }
  if (laid) begin_laying_out();
  return laid;
}

void WindowFeed::send(const MaybeLaid& laid) {
  while (!sending_.empty() && sending_.front()->done()) sending_.pop_front();
  for (int rank = 1; rank < communicator_.size(); ++rank) {
    std::string bytes = laid ? laid->parts[static_cast<std::size_t>(rank - 1)] : std::string();
    sending_.push_back(communicator_.send_bytes(std::move(bytes), rank));
  }
}

std::optional<WindowPart> WindowFeed::receive() {
  const std::string bytes = communicator_.receive_bytes(0);
  if (bytes.empty()) return std::nullopt;
  return part_from_bytes(bytes);
}

}  // namespace braid::exec
