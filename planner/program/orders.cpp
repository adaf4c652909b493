#include "planner/program/orders.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace braid::planner {

StageOrder gpipe_order(std::span<const MicrobatchId> microbatches) {
  StageOrder order;
  for (const MicrobatchId id : microbatches) order.push_back({Kind::forward, id});
  for (const MicrobatchId id : microbatches) order.push_back({Kind::backward, id});
  return order;
}

StageOrder one_forward_one_backward_order(std::span<const MicrobatchId> microbatches, int stage, int stages) {
  const std::size_t count = microbatches.size();
  const std::size_t ahead = std::min(count, static_cast<std::size_t>(stages - stage - 1));
  StageOrder order;
  for (std::size_t i = 0; i < ahead; ++i) order.push_back({Kind::forward, microbatches[i]});
  for (std::size_t i = 0; i < count; ++i) {
    if (i + ahead < count) order.push_back({Kind::forward, microbatches[i + ahead]});
    order.push_back({Kind::backward, microbatches[i]});
  }
  return order;
}

StageOrder interleaved_order(std::span<const MicrobatchId> microbatches, int stage, int stages, int model_chunks) {
  // Groups are filled up with microbatches that there are not: without those an order is as free of circles as with.
  constexpr MicrobatchId kFiller = kNone;
  const auto group = static_cast<std::size_t>(stages);
  StageOrder forwards, backwards;
  for (std::size_t first = 0; first < microbatches.size(); first += group) {
    for (std::int32_t chunk = 0; chunk < model_chunks; ++chunk) {
      for (std::size_t i = first; i < first + group; ++i) {
        const MicrobatchId id = i < microbatches.size() ? microbatches[i] : kFiller;
        forwards.push_back({Kind::forward, id, false, chunk});
        backwards.push_back({Kind::backward, id, false, model_chunks - 1 - chunk});
      }
    }
  }
  const auto ahead =
      std::min(forwards.size(), static_cast<std::size_t>(2 * (stages - stage - 1) + (model_chunks - 1) * stages));
  StageOrder order(forwards.begin(), forwards.begin() + static_cast<std::ptrdiff_t>(ahead));
  for (std::size_t i = 0; i < backwards.size(); ++i) {
    if (i + ahead < forwards.size()) order.push_back(forwards[i + ahead]);
    order.push_back(backwards[i]);
  }
  std::erase_if(order, [](const ComputeSlot& slot) { return slot.microbatch == kFiller; });
  return order;
}

StageOrder one_by_one_order(std::span<const MicrobatchId> microbatches) {
  StageOrder order;
  for (const MicrobatchId id : microbatches) {
    order.push_back({Kind::forward, id});
    order.push_back({Kind::backward, id});
  }
  return order;
}

LoraPipelineStream::LoraPipelineStream(int stages, LoraPipeline mode, double transfer, double mean_work)
    : mode_(mode), transfer_(std::llround(transfer * mean_work)), stages_(static_cast<std::size_t>(stages)) {
  for (std::size_t s = 0; s < stages_.size(); ++s)
    stages_[s].most = static_cast<std::size_t>(most_under_way(static_cast<std::int64_t>(stages_.size() - s), transfer));
}

void LoraPipelineStream::push(const StreamedMicrobatch& microbatch) {
  UnderWay& added = under_way_.emplace_back();
  added.microbatch = microbatch;
  added.forward_ready.assign(stages_.size(), kNever);
  added.backward_ready.assign(stages_.size(), kNever);
  added.forward_ready.front() = 0;
}

std::vector<StageOrder> LoraPipelineStream::advance() {
  // Passes end in the order of the queue; what starts at one time sees all that has ended by then.
  while (!waits_for_more()) {
    const std::int64_t moment = begun_ ? next_moment() : now_;
    begun_ = moment != kNever;
    if (!begun_) break;
    now_ = moment;
    while (!arrivals_.empty() && arrivals_.top() == now_) arrivals_.pop();
    for (; !ends_.empty() && ends_.top().time == now_; ends_.pop()) stages_[ends_.top().stage].busy = false;
    for (std::size_t s = 0; s < stages_.size(); ++s) start(s);
  }
  std::vector<StageOrder> orders;
  for (Stage& stage : stages_) orders.push_back(std::exchange(stage.order, {}));
  for (; left_ < stages_.front().returned; ++left_) under_way_.pop_front();
  return orders;
}

std::int64_t LoraPipelineStream::next_moment() const {
  const std::int64_t end = ends_.empty() ? kNever : ends_.top().time;
  return arrivals_.empty() ? end : std::min(end, arrivals_.top());
}

bool LoraPipelineStream::may_go_forward(std::size_t s) const {
  const Stage& stage = stages_[s];
  if (stage.forwarded == pushed() || at(stage.forwarded).forward_ready[s] > now_) return false;
  const std::int32_t gate = at(stage.forwarded).microbatch.gate;
  if (gate != kNone && stage.returned <= static_cast<std::size_t>(gate)) return false;
  if (stage.forwarded >= paused_ && stage.returned < paused_) return false;
  return mode_ == LoraPipeline::gpipe || stage.forwarded - stage.returned < stage.most;
}

bool LoraPipelineStream::may_go_backward(std::size_t s) const {
  const Stage& stage = stages_[s];
  return stage.returned < stage.forwarded && at(stage.returned).backward_ready[s] <= now_;
}

void LoraPipelineStream::start(std::size_t s) {
  if (stages_[s].busy) return;
  const bool forward = may_go_forward(s), backward = may_go_backward(s);
  if (forward && (mode_ == LoraPipeline::gpipe || !backward)) {
    go_forward(s);
  } else if (backward) {
    go_backward(s);
  }
}

void LoraPipelineStream::go_forward(std::size_t s) {
  Stage& stage = stages_[s];
  UnderWay& passing = at(stage.forwarded++);
  const std::int64_t end = now_ + passing.microbatch.work;
  stage.order.push_back({Kind::forward, passing.microbatch.id});
  if (s + 1 < stages_.size()) {
    arrive(passing.forward_ready[s + 1], end + transfer_);
  } else {
    passing.backward_ready[s] = end;
  }
  stage.busy = true;
  ends_.push({end, s});
}

void LoraPipelineStream::go_backward(std::size_t s) {
  Stage& stage = stages_[s];
  UnderWay& passing = at(stage.returned++);
  const std::int64_t end = now_ + passing.microbatch.work;
  stage.order.push_back({Kind::backward, passing.microbatch.id});
  if (s > 0) arrive(passing.backward_ready[s - 1], end + transfer_);
  stage.busy = true;
  ends_.push({end, s});
}

void LoraPipelineStream::arrive(std::int64_t& ready, std::int64_t time) {
  ready = time;
  if (transfer_ > 0) arrivals_.push(time);
}

std::vector<StageOrder> lora_pipeline_orders(std::span<const StreamedMicrobatch> stream, int stages, LoraPipeline mode,
                                             double transfer) {
  double work = 0;
  for (const StreamedMicrobatch& microbatch : stream) work += static_cast<double>(microbatch.work);
  LoraPipelineStream pipeline(stages, mode, transfer,
                              work / static_cast<double>(std::max<std::size_t>(1, stream.size())));
  for (const StreamedMicrobatch& microbatch : stream) pipeline.push(microbatch);
  pipeline.end();
  return pipeline.advance();
}

namespace {

void append_together(const ComputeSlot& slot, std::span<const MicrobatchId> microbatches, StageOrder& order) {
  for (std::size_t i = 0; i < microbatches.size(); ++i)
    order.push_back({slot.kind, microbatches[i], i > 0, slot.subgraph});
}

}  // namespace

void append_unit(const ComputeSlot& slot, const PipelineUnit& unit, StageOrder& order) {
  if (slot.kind == Kind::forward) {
    for (auto chunk = unit.chunks.begin(); chunk != unit.chunks.end(); ++chunk) append_together(slot, *chunk, order);
  } else {
    for (auto chunk = unit.chunks.rbegin(); chunk != unit.chunks.rend(); ++chunk) append_together(slot, *chunk, order);
  }
}

StageOrder expand(const StageOrder& order, std::span<const PipelineUnit> units) {
  StageOrder expanded;
  for (const ComputeSlot& slot : order) append_unit(slot, units[static_cast<std::size_t>(slot.microbatch)], expanded);
  return expanded;
}

}  // namespace braid::planner
