#include "exec/streams.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/error.h"

namespace braid::exec {

using planner::Instruction;
using planner::InstructionId;

void Streams::begin(const planner::StageProgram& list) {
  list_ = &list;
  spans_.assign(list.instructions.size(), {});
}

Nanoseconds Streams::at(SteadyClock::time_point time) const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count() - zero_;
}

Streams::Span* Streams::span_of(InstructionId id) {
  if (id >= list_->first_id) return &spans_[static_cast<std::size_t>(id - list_->first_id)];
  const auto earlier = earlier_.find(id);
  return earlier == earlier_.end() ? nullptr : &earlier->second.span;
}

void Streams::start(InstructionId id, Start start, Buffer kept) {
  if (kept.size() > 0) kept_[id] = std::move(kept);
  if (!communicator_.on_devices()) return start_by_host(id, std::move(start));
  std::shared_ptr<kernels::Event> ready = device_.record();
  std::unique_ptr<Request> request = start(*ready);
  under_way_.push_back({id, std::move(request), std::move(ready)});
  poll();
}

void Streams::start_by_host(InstructionId id, Start start) {
  start_later([this, id, start = std::move(start)](const kernels::Event& ready) {
    span_of(id)->started = at(SteadyClock::now());
    under_way_.push_back({id, start(ready), nullptr});
  });
}

void Streams::start_later(std::function<void(const kernels::Event& ready)> work) {
  to_start_.push_back({device_.record(), std::move(work)});
  poll();
}

void Streams::computing(InstructionId id, std::shared_ptr<kernels::Event> begun, std::shared_ptr<kernels::Event> ended,
                        Bytes held) {
  computing_.push_back({id, std::move(begun), std::move(ended), held});
}

void Streams::stamp_computed() {
  while (!computing_.empty()) {
    const Computing& first = computing_.front();
    const std::optional<SteadyClock::time_point> ended = first.ended->ended();
    if (!ended) break;
    Span& span = *span_of(first.id);
    span = {at(*first.begun->ended()), at(*ended)};
    memory_.push_back({communicator_.rank(), span.ended, first.held});
    computing_.pop_front();
    came_on();
  }
}

void Streams::stamp_under_way() {
  for (std::size_t i = 0; i < under_way_.size();) {
    if (!under_way_[i].request->done()) {
      ++i;
      continue;
    }
    const InstructionId id = under_way_[i].id;
    Span& span = *span_of(id);
    if (const auto& ready = under_way_[i].ready) {
      span = {at(*ready->ended()), at(*under_way_[i].request->event()->ended())};
    } else {
      span.ended = at(SteadyClock::now());
    }
    kept_.erase(id);
    came_on();
    under_way_[i] = std::move(under_way_.back());
    under_way_.pop_back();
  }
}

void Streams::poll() {
  stamp_computed();
  while (!to_start_.empty() && to_start_.front().ready->ended()) {
    const ToStart first = std::move(to_start_.front());
    to_start_.pop_front();
    first.start(*first.ready);
  }
  stamp_under_way();
}

void Streams::wait_a_little() {
  poll();
  std::this_thread::yield();
  if (seconds_since(came_on_) > patience_)
    throw Failure(fmt::format(
        "rank {} has waited {:g} s for others: one has stopped, or hangs; look at the ranks with ps or nvidia-smi",
        communicator_.rank(), patience_));
}

kernels::Event* Streams::event_of(InstructionId id) const {
  const auto found = std::ranges::find(under_way_, id, &UnderWay::id);
  return found == under_way_.end() ? nullptr : found->request->event();
}

bool Streams::computes(InstructionId id) const {
  using planner::Kind;
  const Instruction* instruction = nullptr;
  if (id >= list_->first_id) {
    instruction = &list_->instructions[static_cast<std::size_t>(id - list_->first_id)];
  } else if (const auto earlier = earlier_.find(id); earlier != earlier_.end()) {
    instruction = &earlier->second.instruction;
  }
  return !instruction || instruction->kind == Kind::forward || instruction->kind == Kind::backward ||
         instruction->kind == Kind::step;
}

void Streams::wait_for(InstructionId id) {
  if (computes(id)) return;
  if (kernels::Event* const event = event_of(id)) return device_.follow(*event);
  for (const Span* span = span_of(id); span && span->ended < 0;) wait_a_little();
}

void Streams::drain() {
  while (!(under_way_.empty() && to_start_.empty() && computing_.empty())) wait_a_little();
}

/// What goes on beside others of its stream starts, for the books, when those told before it have ended, as in a
/// replay.
planner::Event Streams::event(planner::StageIndex stage, InstructionId id, const Instruction& instruction, Span span) {
  Nanoseconds& free = free_[static_cast<std::size_t>(instruction.stream)];
  span.started = std::min(std::max(span.started, free), span.ended);
  free = std::max(free, span.ended);
  return {communicator_.rank(), stage, instruction.stream, instruction.kind, id, span.started, span.ended};
}

std::vector<planner::Event> Streams::take_events(planner::StageIndex stage) {
  std::vector<planner::Event> events;
  for (auto earlier = earlier_.begin(); earlier != earlier_.end();) {
    const auto& [id, told] = *earlier;
    if (told.span.ended >= 0) events.push_back(event(stage, id, told.instruction, told.span));
    earlier = told.span.ended >= 0 ? earlier_.erase(earlier) : std::next(earlier);
  }
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    if (spans_[i].ended >= 0) {
      events.push_back(event(stage, id_of(i), list_->instructions[i], spans_[i]));
    } else {
      earlier_[id_of(i)] = {list_->instructions[i], spans_[i]};
    }
  }
  return events;
}

std::vector<planner::MemorySample> Streams::take_memory() {
  return std::exchange(memory_, {});
}

}  // namespace braid::exec
