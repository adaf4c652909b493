#include "exec/sample_scores.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>
#include <set>
#include <thread>

#include "planner/window/window_steps.h"

namespace braid::exec {
namespace {

/// A microbatch is full when it has so many tokens.
constexpr std::int64_t kTokens = 512;
/// Microbatches' hidden states that may wait to be taken.
constexpr std::size_t kWaiting = 2;
/// Of these messages, beside those of a Program's channels.
constexpr int kTag = 30000;

class SequenceSums final : public Objective {
 public:
  explicit SequenceSums(References& sums) : sums_(sums) {}
  double factor(const SampleRows& /*rows*/) const override { return 0; }
  void take(const SampleRows& rows, double weighted_loss) override {
    sums_[static_cast<std::size_t>(rows.number)][static_cast<std::size_t>(rows.sample.sequence)] += weighted_loss;
  }

 private:
  References& sums_;
};

class Scoring {
 public:
  Scoring(const ScoringRank& rank, planner::TaskIndex task)
      : rank_(rank),
        task_(task),
        sums_(rank.input.datasets[static_cast<std::size_t>(task)].samples.size()),
        sink_(sums_),
        runs_(rank.place.layers.runs().size()) {
    const auto of_replica = [&](const RankPlace& place) { return place.replica == rank.place.replica; };
    const auto first = std::find_if(rank.places.begin(), rank.places.end(), of_replica);
    first_rank_ = static_cast<int>(first - rank.places.begin());
    stages_ = static_cast<int>(std::count_if(first, rank.places.end(), of_replica)) / rank.place.shards;
    for (std::size_t from = 0; from < rank.places.size(); ++from) {
      for (std::size_t to = 0; to < rank.places.size(); ++to)
        if (follows(rank.places[from], rank.places[to]))
          rank.communicator.open_path(static_cast<int>(from), static_cast<int>(to), kTag);
    }
  }

  References run(std::span<const std::int64_t> samples) {
    const std::int32_t replicas = rank_.places.back().replica + 1;
    std::int32_t replica = 0;
    for (std::size_t first = 0; first < samples.size(); replica = (replica + 1) % replicas) {
      planner::Microbatch microbatch;
      while (first < samples.size() && microbatch.computed_tokens() < kTokens) append(samples[first++], microbatch);
      if (replica == rank_.place.replica) score(microbatch);
    }
    wait_for_sends(0);
    rank_.model.settle_losses();
    share();
    return std::move(sums_);
  }

 private:
  /// Whether the first sends the second what it has computed, round the stages of their replica.
  bool follows(const RankPlace& from, const RankPlace& to) const {
    std::int32_t stages = 0;
    for (const RankPlace& place : rank_.places)
      if (place.replica == from.replica) stages = std::max(stages, place.stage + 1);
    return from.replica == to.replica && from.shard == to.shard && stages > 1 && to.stage == (from.stage + 1) % stages;
  }

  void append(std::int64_t number, planner::Microbatch& microbatch) const {
    const workload::Sample& sample =
        rank_.input.datasets[static_cast<std::size_t>(task_)].samples[static_cast<std::size_t>(number)];
    planner::Segment& segment = microbatch.segments.emplace_back();
    segment.task = task_;
    segment.index = static_cast<std::int32_t>(microbatch.segments.size() - 1);
    segment.sample = number;
    segment.chosen = static_cast<std::int32_t>(sample.chosen);
    segment.end = static_cast<std::int32_t>(sample.tokens.size());
  }

  void score(const planner::Microbatch& microbatch) {
    for (std::size_t run = 0; run < runs_; ++run) {
      const bool begins = rank_.place.stage == 0 && run == 0;
      const bool ends = rank_.place.stage + 1 == stages_ && run + 1 == runs_;
      Batch batch = make_batch(microbatch, rank_.input.datasets);
      const std::int64_t numbers = batch.rows() * rank_.input.workload.backbone.hidden;
      Buffer input = begins ? Buffer() : receive(numbers);
      const std::unique_ptr<ShardedPass> pass =
          rank_.model.score(std::move(batch), std::move(input), rank_.adapters, rank_.seeds, sink_, {run, run + 1});
      while (const std::optional<kernels::Matrix> partial = pass->next()) {
        follow(rank_.communicator, rank_.pool.device(),
               [&](const kernels::Event& after) { return rank_.shards->all_reduce(numbers_of(*partial), after); });
      }
      if (!ends) send(pass->take_result());
    }
  }

  /// Of the stage after this one, or before it, round the replica's stages.
  int rank_of(int stage) const {
    return first_rank_ + (stage + stages_) % stages_ * rank_.place.shards + rank_.place.shard;
  }

  Buffer receive(std::int64_t numbers) {
    Buffer buffer = rank_.pool.take(numbers);
    follow(rank_.communicator, rank_.pool.device(), [&](const kernels::Event& after) {
      return rank_.communicator.receive(buffer.numbers(), rank_of(rank_.place.stage - 1), kTag, after);
    });
    return buffer;
  }

  void send(Buffer buffer) {
    Sent& sent = sent_.emplace_back();
    sent.buffer = std::move(buffer);
    const std::unique_ptr<kernels::Event> now = rank_.pool.device().record();
    if (!rank_.communicator.on_devices()) rank_.pool.device().wait();
    sent.request = rank_.communicator.send(sent.buffer.numbers(), rank_of(rank_.place.stage + 1), kTag, *now);
    wait_for_sends(kWaiting);
  }

  void wait_for_sends(std::size_t most) {
    for (; sent_.size() > most; sent_.pop_front()) wait_for(*sent_.front().request);
  }

  static void wait_for(Request& request) {
    while (!request.done()) std::this_thread::yield();
  }

  /// Each replica's last stage has its samples' sums; all others zeros.
  void share() {
    const bool tells = rank_.place.stage + 1 == stages_ && rank_.place.tells_of_losses();
    const std::size_t size = sums_.size() * sizeof(PairSums);
    const std::string mine = tells ? std::string(reinterpret_cast<const char*>(sums_.data()), size) : "";
    const std::vector<std::string> parts = rank_.communicator.gather(mine);
    if (!parts.empty()) std::ranges::fill(sums_, PairSums{});
    for (const std::string& part : parts) {
      if (part.empty()) continue;
      References more(sums_.size());
      std::memcpy(more.data(), part.data(), size);
      for (std::size_t i = 0; i < sums_.size(); ++i)
        for (std::size_t s = 0; s < more[i].size(); ++s) sums_[i][s] += more[i][s];
    }
    rank_.communicator.broadcast(std::as_writable_bytes(std::span(sums_)));
  }

  struct Sent {
    Buffer buffer;
    std::unique_ptr<Request> request;
  };

  const ScoringRank& rank_;
  planner::TaskIndex task_;
  References sums_;
  SequenceSums sink_;
  std::size_t runs_;
  int first_rank_ = 0, stages_ = 1;
  std::deque<Sent> sent_;
};

}  // namespace

std::vector<std::int64_t> samples_of_windows(const RunInput& input, planner::TaskIndex task,
                                             std::span<const std::int64_t> windows) {
  std::set<std::int64_t> numbers;
  const auto add = [&](std::int64_t step) {
    for (const workload::SampleRef& sample : input.samples.global_batch(task, step)) numbers.insert(sample.sample);
  };
  if (windows.empty()) {
    // Epochs hold the same samples.
    const std::int64_t steps = std::min(input.samples.steps(task), input.samples.batches_per_epoch(task));
    for (std::int64_t step = 0; step < steps; ++step) add(step);
    for (const std::int64_t sample : held_out_samples(input, task)) numbers.insert(sample);
  }
  for (const std::int64_t window : windows) {
    for (const planner::WindowStep& step : planner::window_steps(input.fixed, {input.workload, input.samples}, window))
      if (step.task == task) add(step.global_batch);
  }
  return {numbers.begin(), numbers.end()};
}

std::vector<std::int64_t> held_out_samples(const RunInput& input, planner::TaskIndex task) {
  const workload::Dataset& dataset = input.datasets[static_cast<std::size_t>(task)];
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(dataset.held_out));
  std::iota(numbers.begin(), numbers.end(), std::ssize(dataset.samples) - dataset.held_out);
  return numbers;
}

References score_samples(const ScoringRank& rank, planner::TaskIndex task, std::span<const std::int64_t> samples) {
  return Scoring(rank, task).run(samples);
}

}  // namespace braid::exec
