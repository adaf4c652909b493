#include "exec/runner.h"

#include <chrono>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/steady_clock.h"
#include "exec/executable.h"
#include "exec/execution.h"
#include "exec/files/peft.h"
#include "exec/sample_scores.h"
#include "planner/program/dependency_graph.h"

namespace braid::exec {

using planner::TaskIndex;

namespace {

std::int64_t nanoseconds_of(SteadyClock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

void check_ranks(const planner::FixedPlan& fixed, const Communicator& communicator) {
  if (fixed.ranks() != communicator.size())
    throw error("the plan needs {} ranks and {} are running; start it with mpirun -n {}", fixed.ranks(),
                communicator.size(), fixed.ranks());
}

}  // namespace

Runner::Runner(const RunInput& input, Communicator& communicator, kernels::Device& device, HeldBackbone held)
    : input_(input),
      devices_(device.has_groups() && (communicator.size() > 1 || input.fixed.shards_weights)
                   ? make_device_communicator(communicator, device)
                   : nullptr),
      communicator_(devices_ ? devices_.get() : &communicator),
      pool_(device),
      probe_(device),
      objectives_(input.workload.tasks, input.samples) {
  check_executable(input.fixed);
  check_targets(input.workload);
  check_ranks(input.fixed, communicator);
  places_ = rank_places(input.fixed);
  place_ = places_[static_cast<std::size_t>(communicator.rank())];
  const planner::ReplicaShape& replica = input.fixed.deployment[static_cast<std::size_t>(place_.replica)];
  const SafetensorsFolder tensors = SafetensorsFolder::open(input.workload.backbone_folder);
  if (held.shard != place_.shard || held.shards != place_.shards || input.fixed.shards_weights) held.copies.clear();
  for (std::int64_t copy = 0; copy < input.fixed.backbone_copies; ++copy) {
    const Shard shard(input.workload.backbone, place_.shard, place_.shards);
    auto shares = input.fixed.shards_weights ? std::make_unique<WeightShares>(*communicator_, device) : nullptr;
    KeptWeights* kept = copy < std::ssize(held.copies) ? &held.copies[static_cast<std::size_t>(copy)] : nullptr;
    std::function<void(LayerWeights&)> take;
    if (shares) take = [&](LayerWeights& layer) { shares->keep(layer); };
    StageWeights weights =
        load_stage_weights(tensors, shard, place_.layers, device.kernels(), input.workload.held_weights(), take, kept);
    for (const std::int32_t layer : place_.layers.numbers())
      loaded_layers_ += kept && kept->layers.holds(layer) ? 0 : 1;
    if (shares) shares->publish();
    models_.push_back(std::make_unique<StageModel>(shard, place_.layers, replica.recompute_of(place_.stage),
                                                   std::move(weights), pool_, probe_, std::move(shares)));
    models_.back()->compile_layers();
    models_.back()->compile_head();
  }
  const std::set<TaskIndex> planned = input.fixed.tasks();
  for (const workload::Task& task : input.workload.tasks) {
    seeds_.push_back(task.seed);
    std::unique_ptr<Adapter>& adapter = adapters_.emplace_back();
    if (!planned.contains(static_cast<TaskIndex>(adapters_.size() - 1))) continue;
    adapter = std::make_unique<Adapter>(input.workload.backbone, task.adapter, place_.layers, task.seed);
    models_.front()->begin(*adapter);
    if (!task.init_from.empty()) load_peft_adapter(task.init_from, *adapter);
    adapter->move_to(device);
    if (input.workload.reproducible) {
      BRAID_CHECK(device.kernels().outer_sums, "exact sums on {}", "a device of its own memory");
      adapter->hold_exact_sums();
    }
  }
  // All ranks of the run make all groups, in one order.
  for (std::size_t first = 0; first < places_.size(); first += static_cast<std::size_t>(places_[first].shards)) {
    std::vector<int> ranks(static_cast<std::size_t>(places_[first].shards));
    std::iota(ranks.begin(), ranks.end(), static_cast<int>(first));
    if (ranks.size() < 2) continue;
    if (auto group = communicator_->make_group(ranks)) shards_ = std::move(group);
  }
  zero_ = nanoseconds_of(SteadyClock::now());
  communicator.barrier();
  // On one host the clocks are one clock; else all start at the barrier.
  if (communicator.one_host()) {
    communicator.broadcast(std::as_writable_bytes(std::span(&zero_, 1)));
  } else {
    zero_ = nanoseconds_of(SteadyClock::now());
  }
}

Runner::~Runner() = default;

HeldBackbone Runner::release_backbone() && {
  device().wait();
  execution_.reset();
  HeldBackbone held{place_.shard, place_.shards, {}};
  if (input_.fixed.shards_weights) return held;
  for (const std::unique_ptr<StageModel>& model : models_)
    held.copies.push_back({place_.layers, model->release_weights()});
  models_.clear();
  return held;
}

/// Each shard of a stage has a path to its like.
void Runner::open_paths(const planner::Program& program) {
  for (std::size_t channel = 0; channel < program.channels.size(); ++channel) {
    const auto ranks_of = [&](planner::StageIndex stage) -> std::span<const std::int32_t> {
      return program.stages[static_cast<std::size_t>(stage)].ranks;
    };
    const auto from = ranks_of(program.channels[channel].from), to = ranks_of(program.channels[channel].to);
    for (std::size_t shard = 0; shard < from.size(); ++shard)
      communicator_->open_path(from[shard], to[shard], static_cast<int>(channel));
  }
}

RunReport Runner::run(const planner::Program& program) {
  return run(program, planner::most_waiting_messages(program));
}

RunReport Runner::run(const planner::Program& program, std::span<const std::int64_t> ahead,
                      const planner::StageTurns& turns) {
  if (!execution_) {
    for (const planner::Group& group : program.groups) {
      std::vector<int> ranks;
      for (const planner::StageIndex stage : group.stages) {
        for (const std::int32_t rank : program.stages[static_cast<std::size_t>(stage)].ranks) ranks.push_back(rank);
      }
      groups_.push_back(communicator_->make_group(ranks));
    }
    open_paths(program);
    execution_ = std::make_unique<Execution>(*this, program);
  }
  return execution_->run(program, ahead, turns);
}

void Runner::score_references(std::span<const std::int64_t> windows,
                              const std::function<void(TaskIndex task, std::size_t pairs)>& tell) {
  for (TaskIndex task = 0; task < static_cast<TaskIndex>(input_.workload.tasks.size()); ++task) {
    if (!input_.workload.tasks[static_cast<std::size_t>(task)].objective.pairs()) continue;
    if (!adapters_[static_cast<std::size_t>(task)]) continue;
    const std::vector<std::int64_t> pairs = samples_of_windows(input_, task, windows);
    if (tell) tell(task, pairs.size());
    objectives_.set_references(task, score(task, pairs));
  }
}

References Runner::score(TaskIndex task, std::span<const std::int64_t> samples) {
  return exec::score_samples(
      {*models_.front(), places_, place_, *communicator_, shards_.get(), adapters_, seeds_, pool_, input_}, task,
      samples);
}

BatchLoss Runner::evaluate(TaskIndex task) {
  const workload::Dataset& dataset = input_.datasets[static_cast<std::size_t>(task)];
  return objectives_.loss_of(task, score(task, held_out_samples(input_, task)), dataset.samples,
                             dataset.samples.size() - static_cast<std::size_t>(dataset.held_out));
}

void Runner::stop(TaskIndex task) {
  if (execution_) execution_->stop(task);
}

}  // namespace braid::exec
