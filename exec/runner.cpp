#include "exec/runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <list>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/steady_clock.h"
#include "exec/executable.h"
#include "exec/files/peft.h"
#include "exec/gathered_norms.h"
#include "exec/gathered_sums.h"
#include "exec/optimizer.h"
#include "exec/sample_scores.h"
#include "exec/streams.h"
#include "planner/program/dependency_graph.h"

namespace braid::exec {

using planner::Instruction;
using planner::InstructionId;
using planner::Kind;
using planner::MicrobatchId;
using planner::StageProgram;
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

/// What is on its way through this rank, Program after Program.
class Runner::Execution {
 public:
  Execution(Runner& runner, const planner::Program& program)
      : runner_(runner), streams_(runner.device(), *runner.communicator_, runner.zero_) {
    held_.assign(program.channels.size(), 0);
  }

  RunReport run(const planner::Program& program, std::span<const std::int64_t> ahead,
                const planner::StageTurns& turns) {
    begin(program, ahead);
    streams_.set_patience(runner_.patience_);
    turns_ = &turns;
    runner_.probe_.between = [this] { streams_.poll(); };
    for (std::size_t c = 0; c < channels_.size(); ++c) post_receives(c);
    for (std::size_t i = 0; i < stage_->instructions.size(); i += count_together(i)) execute(i);
    for (std::size_t c = 0; c < channels_.size(); ++c) post_all_receives(c);
    streams_.poll();
    if (planner::is_empty(program.after)) streams_.drain();
    runner_.probe_.between = nullptr;
    return {streams_.take_events(runner_.stage()), streams_.take_memory(), std::exchange(steps_, {})};
  }

  void stop(TaskIndex task) { stopped_.insert(task); }

 private:
  /// The receives of a channel in the list, as places.
  struct ChannelReceives {
    std::vector<std::size_t> places;
    std::size_t posted = 0;
  };
  /// A message that is posted or has come, until it is taken.
  struct Arrival {
    Buffer buffer;
    MicrobatchId microbatch = planner::kNone;
    planner::ChannelIndex channel = planner::kNone;
  };
  void begin(const planner::Program& program, std::span<const std::int64_t> ahead) {
    program_ = &program;
    stage_ = &program.stages[static_cast<std::size_t>(runner_.stage())];
    ahead_.assign(ahead.begin(), ahead.end());
    streams_.begin(*stage_);
    channels_.assign(program.channels.size(), {});
    for (std::size_t i = 0; i < stage_->instructions.size(); ++i) {
      const Instruction& instruction = stage_->instructions[i];
      if (planner::is_recv(instruction.kind))
        channels_[static_cast<std::size_t>(instruction.channel)].places.push_back(i);
    }
  }

  kernels::Device& device() const { return runner_.device(); }
  Communicator& communicator() const { return *runner_.communicator_; }
  const kernels::Kernels& kernels() const { return device().kernels(); }
  InstructionId id_of(std::size_t place) const { return stage_->first_id + static_cast<InstructionId>(place); }
  /// Of a message: activations or their gradients.
  std::int64_t numbers(const Instruction& instruction) const {
    return instruction.bytes / costmodel::bytes_of(device().activations());
  }

  int peer(const Instruction& instruction) const {
    const planner::Channel& channel = program_->channels[static_cast<std::size_t>(instruction.channel)];
    const planner::StageIndex other = planner::is_send(instruction.kind) ? channel.to : channel.from;
    return program_->stages[static_cast<std::size_t>(other)].ranks[static_cast<std::size_t>(runner_.place_.shard)];
  }

  void post_receives(std::size_t channel) {
    while (channels_[channel].posted < channels_[channel].places.size() &&
           held_[channel] < std::max<std::int64_t>(ahead_[channel], 1))
      post_next_receive(channel);
  }

  /// The next Program knows nothing of those that are left.
  void post_all_receives(std::size_t channel) {
    while (channels_[channel].posted < channels_[channel].places.size()) post_next_receive(channel);
  }

  void post_next_receive(std::size_t channel) {
    ChannelReceives& receives = channels_[channel];
    const std::size_t place = receives.places[receives.posted++];
    const Instruction& instruction = stage_->instructions[place];
    ++held_[channel];
    Arrival& arrival = arrivals_[id_of(place)];
    arrival = {runner_.pool_.take(numbers(instruction)), instruction.microbatch, instruction.channel};
    streams_.start(id_of(place),
                   [this, numbers = arrival.buffer.numbers(), from = peer(instruction), channel = instruction.channel](
                       const kernels::Event& after) { return communicator().receive(numbers, from, channel, after); });
  }

  void execute(std::size_t place) {
    const Instruction& instruction = stage_->instructions[place];
    streams_.came_on();
    if (planner::is_recv(instruction.kind)) return;  // posted ahead
    const std::span<const Instruction> together = std::span(stage_->instructions).subspan(place, count_together(place));
    for (const Instruction& one : together)
      for (const InstructionId id : stage_->waits_of(one)) streams_.wait_for(id);
    const std::shared_ptr<kernels::Event> begun = device().record();
    switch (instruction.kind) {
      case Kind::forward:
        forward(id_of(place), instruction);
        break;
      case Kind::backward:
        backward(id_of(place), instruction);
        break;
      case Kind::step:
        step(together);
        break;
      case Kind::send_activation:
      case Kind::send_gradient:
        send(id_of(place), instruction);
        return;
      case Kind::reduce_norm:
        reduce_norm(id_of(place), instruction);
        return;
      case Kind::sync_adapter:
        sync_adapter(id_of(place), instruction);
        return;
      case Kind::recv_activation:
      case Kind::recv_gradient:
        break;
    }
    const std::shared_ptr<kernels::Event> ended = device().record();
    for (std::size_t i = 0; i < together.size(); ++i)
      streams_.computing(id_of(place + i), begun, ended, runner_.pool_.in_use());
    streams_.poll();
  }

  /// The message of that microbatch that the instruction waits for, taken from its channel; the next receive is posted
  /// in its place. Empty where the pass begins on this stage.
  Buffer take_input(const Instruction& instruction, MicrobatchId microbatch) {
    for (const InstructionId id : stage_->waits_of(instruction)) {
      const auto arrival = arrivals_.find(id);
      if (arrival == arrivals_.end() || arrival->second.microbatch != microbatch) continue;
      Buffer input = std::move(arrival->second.buffer);
      const auto channel = static_cast<std::size_t>(arrival->second.channel);
      arrivals_.erase(arrival);
      --held_[channel];
      post_receives(channel);
      return input;
    }
    return {};
  }

  StageModel& model_of(const planner::Microbatch& microbatch) {
    const auto copy = std::min(runner_.models_.size() - 1, static_cast<std::size_t>(microbatch.segments.front().task));
    return *runner_.models_[copy];
  }

  static LayerRuns runs_of(const planner::Part& part) {
    return {static_cast<std::size_t>(part.first_subgraph), static_cast<std::size_t>(part.last_subgraph)};
  }

  /// A microbatch's pass, and what of it shards sum up now.
  struct Passing {
    MicrobatchId microbatch = 0;
    std::unique_ptr<ShardedPass> pass;
    std::unique_ptr<Request> sum = nullptr;
    bool summing = false;  // or about to
    bool ended = false;
  };

  void forward(InstructionId id, const Instruction& instruction) {
    std::vector<Passing> passes;
    for (const planner::Part& part : stage_->parts_of(instruction)) {
      const planner::Microbatch& microbatch = program_->microbatch(part.microbatch);
      passes.push_back({microbatch.id, model_of(microbatch)
                                           .forward(microbatch.id, make_batch(microbatch, runner_.input_.datasets),
                                                    take_input(instruction, microbatch.id), runner_.adapters_,
                                                    runner_.seeds_, runner_.objectives_, runs_of(part))});
      if (!runner_.shards_) run(passes, {});
    }
    run(passes, turns_of(id));
  }

  void backward(InstructionId id, const Instruction& instruction) {
    std::vector<Passing> passes;
    for (const planner::Part& part : stage_->parts_of(instruction)) {
      const planner::Microbatch& microbatch = program_->microbatch(part.microbatch);
      passes.push_back({microbatch.id, model_of(microbatch)
                                           .backward(microbatch.id, take_input(instruction, microbatch.id),
                                                     runner_.adapters_, runner_.seeds_, runs_of(part))});
      if (!runner_.shards_) run(passes, {});
    }
    run(passes, turns_of(id));
  }

  std::span<const std::int32_t> turns_of(InstructionId id) const {
    const auto turns = turns_->find(id);
    return turns == turns_->end() ? std::span<const std::int32_t>() : turns->second;
  }

  /// In turns, and what these leave one after another; without shards each pass runs to its end, before the next one's
  /// input is taken.
  void run(std::vector<Passing>& passes, std::span<const std::int32_t> turns) {
    for (const std::int32_t turn : turns) go_on(passes[static_cast<std::size_t>(turn)]);
    while (std::any_of(passes.begin(), passes.end(), [](const Passing& passing) { return !passing.ended; })) {
      for (Passing& passing : passes) go_on(passing);
    }
    passes.clear();
  }

  /// Up to the next partial sum, which begins, or to the end.
  void go_on(Passing& passing) {
    if (passing.ended) return;
    if (kernels::Event* const event = passing.sum ? passing.sum->event() : nullptr) {
      device().follow(*event);
    } else {
      while (passing.summing && !(passing.sum && passing.sum->done())) streams_.wait_a_little();
    }
    passing.sum.reset();
    passing.summing = false;
    if (const std::optional<kernels::Matrix> partial = passing.pass->next()) {
      passing.summing = true;
      const auto meet = [this, &passing, sums = numbers_of(*partial)](const kernels::Event& ready) {
        passing.sum = runner_.shards_->all_reduce(sums, ready);
      };
      if (communicator().on_devices()) {
        meet(*device().record());
      } else {
        streams_.start_later(meet);
      }
      return;
    }
    results_[passing.microbatch] = passing.pass->take_result();
    passing.pass.reset();
    passing.ended = true;
  }

  void send(InstructionId id, const Instruction& instruction) {
    Buffer result = std::move(results_.extract(instruction.microbatch).mapped());
    const Numbers numbers = result.numbers();
    streams_.start(
        id,
        [this, numbers, to = peer(instruction), channel = instruction.channel](const kernels::Event& after) {
          return communicator().send(numbers, to, channel, after);
        },
        std::move(result));
  }

  /// Each shard and replica has the gradient of its own tokens and columns.
  void sync_adapter(InstructionId id, const Instruction& instruction) {
    Adapter& adapter = *runner_.adapters_[static_cast<std::size_t>(instruction.task)];
    CommunicatorGroup& group = *runner_.groups_[static_cast<std::size_t>(instruction.group)];
    if (adapter.has_exact_sums()) {
      GatheredSums& sums = sums_[instruction.task].emplace_back(instruction.layers, adapter.sums(instruction.layers),
                                                                ranks_of(instruction.group));
      streams_.start_by_host(id, [&sums, &group](const kernels::Event&) { return sums.start(group); });
      return;
    }
    streams_.start(id, [&group, gradients = adapter.gradients(instruction.layers)](const kernels::Event& after) {
      return group.all_reduce(numbers_of(gradients.span()), after);
    });
  }

  std::size_t ranks_of(planner::GroupIndex group) const {
    std::size_t ranks = 0;
    for (const planner::StageIndex stage : program_->groups[static_cast<std::size_t>(group)].stages)
      ranks += program_->stages[static_cast<std::size_t>(stage)].ranks.size();
    return ranks;
  }

  /// What was summed up exactly, here and on the ranks that it was synchronized with, is the gradient.
  void settle_sums(TaskIndex task) {
    Adapter& adapter = *runner_.adapters_[static_cast<std::size_t>(task)];
    if (!adapter.has_exact_sums()) return;
    for (const GatheredSums& sums : sums_[task]) adapter.set_sums(sums.layers(), sums.sum());
    sums_.erase(task);
    adapter.settle_sums();
  }

  void reduce_norm(InstructionId id, const Instruction& instruction) {
    settle_sums(instruction.task);
    GatheredNorms& norms = norms_[instruction.task];
    squared_norms(*runner_.adapters_[static_cast<std::size_t>(instruction.task)], runner_.pool_, norms.mine());
    norms.prepare(*program_, instruction.group, runner_.place_.shard == 0);
    CommunicatorGroup& group = *runner_.groups_[static_cast<std::size_t>(instruction.group)];
    streams_.start_by_host(id, [&norms, &group](const kernels::Event&) { return norms.start(group); });
  }

  /// Until all that the device was told has ended and its losses are told, while messages go on.
  void wait_for_device() {
    const std::unique_ptr<kernels::Event> now = device().record();
    while (!now->ended()) streams_.wait_a_little();
    for (const auto& model : runner_.models_) model->settle_losses();
  }

  /// How many Steps are taken together, from that place in the list on: those that follow one another, for a device of
  /// its own memory, which is then waited for once and told of one launch.
  std::size_t count_together(std::size_t place) const {
    std::size_t count = 1;
    if (stage_->instructions[place].kind != Kind::step || device().host_memory()) return count;
    std::set<TaskIndex> tasks = {stage_->instructions[place].task};
    while (place + count < stage_->instructions.size() && stage_->instructions[place + count].kind == Kind::step &&
           tasks.insert(stage_->instructions[place + count].task).second)
      ++count;
    return count;
  }

  /// What is decided by numbers of the device waits for them.
  void step(std::span<const Instruction> instructions) {
    std::vector<std::vector<double>> norms(instructions.size());
    std::vector<NormsOf> norms_of_tasks;
    for (const Instruction& instruction : instructions) settle_sums(instruction.task);
    for (std::size_t i = 0; i < instructions.size(); ++i)
      norms_of_tasks.push_back({&adapter_of(instructions[i]), &norms[i]});
    squared_norms(norms_of_tasks, runner_.pool_);
    wait_for_device();
    std::vector<StepOf> steps;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      if (const std::optional<double> scale = finish_batch(instructions[i], norms[i]))
        steps.push_back({&optimizer_of(instructions[i]), instructions[i].global_batch,
                         runner_.input_.samples.steps(instructions[i].task), *scale, &adapter_of(instructions[i])});
    }
    if (steps.empty()) return;
    double all = 0;
    for (const StepOf& step : steps) all += static_cast<double>(step.adapter->parameters().size());
    const std::shared_ptr<kernels::Event> begun = runner_.probe_.mark();
    take_steps(steps, kernels());
    const std::shared_ptr<kernels::Event> ended = runner_.probe_.mark();
    for (const StepOf& step : steps) {
      const auto numbers = static_cast<std::int64_t>(step.adapter->parameters().size());
      runner_.probe_.hear({costmodel::Operator::adamw, costmodel::Pass::forward, {}, numbers, 0, 0, 1},
                          {{begun, ended, static_cast<double>(numbers) / all}});
    }
  }
  Adapter& adapter_of(const Instruction& instruction) const {
    return *runner_.adapters_[static_cast<std::size_t>(instruction.task)];
  }
  const workload::Optimizer& optimizer_of(const Instruction& instruction) const {
    return runner_.input_.workload.tasks[static_cast<std::size_t>(instruction.task)].optimizer;
  }

  /// Reports a global batch of which all has been computed, and gives the factor of its gradient; nothing where no step
  /// is to be taken.
  std::optional<double> finish_batch(const Instruction& instruction, std::span<const double> norms_here) {
    StepReport& report = steps_[{instruction.task, instruction.global_batch}];
    const BatchLoss loss = runner_.objectives_.finish(instruction.task, instruction.global_batch);
    if (runner_.place_.tells_of_losses()) report.loss = loss;
    report.squared_norms.assign(static_cast<std::size_t>(runner_.input_.workload.backbone.layers), 0);
    if (runner_.place_.tells_of_layers())
      for (std::size_t i = 0; i < norms_here.size(); ++i)
        report.squared_norms[static_cast<std::size_t>(adapter_of(instruction).layers().numbers()[i])] = norms_here[i];
    const double local = std::accumulate(norms_here.begin(), norms_here.end(), 0.0);
    double scale = 1;
    bool finite = std::isfinite(loss.loss) && std::isfinite(local);
    if (const auto norms = norms_.find(instruction.task); norms != norms_.end()) {
      const double sum = norms->second.sum();
      scale = clip_scale(std::sqrt(sum), optimizer_of(instruction).max_grad_norm);
      finite = finite && std::isfinite(sum);
      norms_.erase(norms);
    }
    if (!finite) stopped_.insert(instruction.task);
    report.diverged = stopped_.contains(instruction.task);
    return report.diverged ? std::nullopt : std::optional(scale);
  }

  Runner& runner_;

  // Of the Program that runs.
  const planner::Program* program_ = nullptr;
  const StageProgram* stage_ = nullptr;
  std::vector<std::int64_t> ahead_;
  const planner::StageTurns* turns_ = nullptr;
  std::vector<ChannelReceives> channels_;
  std::map<planner::BatchKey, StepReport> steps_;

  // What outlives it.
  Streams streams_;
  std::map<InstructionId, Arrival> arrivals_;  // per receive
  std::vector<std::int64_t> held_;             // of them, per channel
  std::map<MicrobatchId, Buffer> results_;     // computed, not yet sent
  std::map<TaskIndex, GatheredNorms> norms_;
  std::map<TaskIndex, std::list<GatheredSums>> sums_;  // exact ones of gradients, since the last step
  std::set<TaskIndex> stopped_;                        // diverged
};

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
