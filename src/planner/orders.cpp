#include "planner/orders.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>

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

namespace {

/// The stages of a LoRAPP stream, each taking the next pass that it may.
class LoraPipelineSimulation {
 public:
  LoraPipelineSimulation(std::span<const StreamedMicrobatch> stream, int stages, LoraPipeline mode, double transfer)
      : stream_(stream), mode_(mode), stages_(static_cast<std::size_t>(stages)) {
    std::int64_t work = 0;
    for (const StreamedMicrobatch& microbatch : stream) work += microbatch.work;
    if (!stream.empty())
      transfer_ = std::llround(transfer * static_cast<double>(work) / static_cast<double>(stream.size()));
    for (std::size_t s = 0; s < stages_.size(); ++s)
      stages_[s].most =
          static_cast<std::size_t>(most_under_way(static_cast<std::int64_t>(stages_.size() - s), transfer));
    for (Stage& stage : stages_) {
      stage.forward_ready.assign(stream.size(), kNever);
      stage.backward_ready.assign(stream.size(), kNever);
    }
    stages_.front().forward_ready.assign(stream.size(), 0);
  }

  std::vector<StageOrder> run() {
    // Passes end in the order of the queue; what starts at one time sees all that has ended by then.
    std::priority_queue<Ending, std::vector<Ending>, std::greater<>> ends;
    for (std::size_t s = 0; s < stages_.size(); ++s) start(s, 0, ends);
    while (!ends.empty() || !arrivals_.empty()) {
      const std::int64_t end = ends.empty() ? kNever : ends.top().time;
      const std::int64_t now = arrivals_.empty() ? end : std::min(end, arrivals_.top());
      while (!arrivals_.empty() && arrivals_.top() == now) arrivals_.pop();
      for (; !ends.empty() && ends.top().time == now; ends.pop()) stages_[ends.top().stage].busy = false;
      for (std::size_t s = 0; s < stages_.size(); ++s) start(s, now, ends);
    }
    std::vector<StageOrder> orders;
    for (Stage& stage : stages_) orders.push_back(std::move(stage.order));
    return orders;
  }

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  struct Stage {
    std::size_t forwarded = 0, returned = 0;                  // how many
    std::vector<std::int64_t> forward_ready, backward_ready;  // per microbatch, when
    bool busy = false;
    std::size_t most = 1;  // under way
    StageOrder order;
  };
  struct Ending {
    std::int64_t time = 0;
    std::size_t stage = 0;
    auto operator<=>(const Ending&) const = default;
  };

  bool may_go_forward(std::size_t s, std::int64_t now) const {
    const Stage& stage = stages_[s];
    if (stage.forwarded == stream_.size() || stage.forward_ready[stage.forwarded] > now) return false;
    const std::int32_t gate = stream_[stage.forwarded].gate;
    if (gate != kNone && stage.returned <= static_cast<std::size_t>(gate)) return false;
    return mode_ == LoraPipeline::gpipe || stage.forwarded - stage.returned < stage.most;
  }

  bool may_go_backward(std::size_t s, std::int64_t now) const {
    const Stage& stage = stages_[s];
    return stage.returned < stage.forwarded && stage.backward_ready[stage.returned] <= now;
  }

  template <typename Ends>
  void start(std::size_t s, std::int64_t now, Ends& ends) {
    if (stages_[s].busy) return;
    const bool forward = may_go_forward(s, now), backward = may_go_backward(s, now);
    if (!forward && !backward) return;
    stages_[s].busy = true;
    ends.push({forward && (mode_ == LoraPipeline::gpipe || !backward) ? go_forward(s, now) : go_backward(s, now), s});
  }

  /// Both return when the pass ends.
  std::int64_t go_forward(std::size_t s, std::int64_t now) {
    Stage& stage = stages_[s];
    const StreamedMicrobatch& microbatch = stream_[stage.forwarded];
    const std::int64_t end = now + microbatch.work;
    stage.order.push_back({Kind::forward, microbatch.id});
    if (s + 1 < stages_.size()) {
      arrive(stages_[s + 1].forward_ready[stage.forwarded], end + transfer_);
    } else {
      stage.backward_ready[stage.forwarded] = end;
    }
    ++stage.forwarded;
    return end;
  }
  std::int64_t go_backward(std::size_t s, std::int64_t now) {
    Stage& stage = stages_[s];
    const StreamedMicrobatch& microbatch = stream_[stage.returned];
    const std::int64_t end = now + microbatch.work;
    stage.order.push_back({Kind::backward, microbatch.id});
    if (s > 0) arrive(stages_[s - 1].backward_ready[stage.returned], end + transfer_);
    ++stage.returned;
    return end;
  }

  void arrive(std::int64_t& ready, std::int64_t time) {
    ready = time;
    if (transfer_ > 0) arrivals_.push(time);
  }

  std::span<const StreamedMicrobatch> stream_;
  LoraPipeline mode_;
  std::int64_t transfer_ = 0;
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> arrivals_;  // of messages, when
  std::vector<Stage> stages_;
};

}  // namespace

std::vector<StageOrder> lora_pipeline_orders(std::span<const StreamedMicrobatch> stream, int stages, LoraPipeline mode,
                                             double transfer) {
  return LoraPipelineSimulation(stream, stages, mode, transfer).run();
}

namespace {

void append_together(const ComputeSlot& slot, std::span<const MicrobatchId> microbatches, StageOrder& order) {
  for (std::size_t i = 0; i < microbatches.size(); ++i)
    order.push_back({slot.kind, microbatches[i], i > 0, slot.subgraph});
}

}  // namespace

StageOrder expand(const StageOrder& order, std::span<const PipelineUnit> units) {
  StageOrder expanded;
  for (const ComputeSlot& slot : order) {
    const std::vector<std::vector<MicrobatchId>>& chunks = units[static_cast<std::size_t>(slot.microbatch)].chunks;
    if (slot.kind == Kind::forward) {
      for (auto chunk = chunks.begin(); chunk != chunks.end(); ++chunk) append_together(slot, *chunk, expanded);
    } else {
      for (auto chunk = chunks.rbegin(); chunk != chunks.rend(); ++chunk) append_together(slot, *chunk, expanded);
    }
  }
  return expanded;
}

}  // namespace braid::planner
