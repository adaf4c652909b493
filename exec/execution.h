#pragma once

#include <list>
#include <map>
#include <set>

#include "exec/gathered_norms.h"
#include "exec/gathered_sums.h"
#include "exec/runner.h"
#include "exec/streams.h"

namespace braid::exec {

/// What is on its way through this rank, Program after Program. A part of the runner: execution.cpp has what goes
/// through it, execution_steps.cpp how a global batch ends.
class Runner::Execution {
 public:
  Execution(Runner& runner, const planner::Program& program);

  RunReport run(const planner::Program& program, std::span<const std::int64_t> ahead, const planner::StageTurns& turns);
  void stop(planner::TaskIndex task) { stopped_.insert(task); }

 private:
  /// The receives of a channel in the list, as places.
  struct ChannelReceives {
    std::vector<std::size_t> places;
    std::size_t posted = 0;
  };
  /// A message that is posted or has come, until it is taken.
  struct Arrival {
    Buffer buffer;
    planner::MicrobatchId microbatch = planner::kNone;
    planner::ChannelIndex channel = planner::kNone;
  };
  void begin(const planner::Program& program, std::span<const std::int64_t> ahead);
  kernels::Device& device() const { return runner_.device(); }
  Communicator& communicator() const { return *runner_.communicator_; }
  const kernels::Kernels& kernels() const { return device().kernels(); }
  planner::InstructionId id_of(std::size_t place) const {
    return stage_->first_id + static_cast<planner::InstructionId>(place);
  }
  /// Of a message: activations or their gradients.
  std::int64_t numbers(const planner::Instruction& instruction) const;
  int peer(const planner::Instruction& instruction) const;
  void post_receives(std::size_t channel);

  /// The next Program knows nothing of those that are left.
  void post_all_receives(std::size_t channel);
  void post_next_receive(std::size_t channel);
  void execute(std::size_t place);

  /// The message of that microbatch that the instruction waits for, taken from its channel; the next receive is posted
  /// in its place. Empty where the pass begins on this stage.
  Buffer take_input(const planner::Instruction& instruction, planner::MicrobatchId microbatch);
  StageModel& model_of(const planner::Microbatch& microbatch);

  /// A microbatch's pass, and what of it shards sum up now.
  struct Passing {
    planner::MicrobatchId microbatch = 0;
    std::unique_ptr<ShardedPass> pass;
    std::unique_ptr<Request> sum = nullptr;
    bool summing = false;  // or about to
    bool ended = false;
  };
  void forward(planner::InstructionId id, const planner::Instruction& instruction);
  void backward(planner::InstructionId id, const planner::Instruction& instruction);
  std::span<const std::int32_t> turns_of(planner::InstructionId id) const;

  /// In turns, and what these leave one after another; without shards each pass runs to its end, before the next one's
  /// input is taken.
  void run(std::vector<Passing>& passes, std::span<const std::int32_t> turns);

  /// Up to the next partial sum, which begins, or to the end.
  void go_on(Passing& passing);
  void send(planner::InstructionId id, const planner::Instruction& instruction);

  /// Each shard and replica has the gradient of its own tokens and columns.
  void sync_adapter(planner::InstructionId id, const planner::Instruction& instruction);
  std::size_t ranks_of(planner::GroupIndex group) const;

  /// What was summed up exactly, here and on the ranks that it was synchronized with, is the gradient.
  void settle_sums(planner::TaskIndex task);
  void reduce_norm(planner::InstructionId id, const planner::Instruction& instruction);

  /// Until all that the device was told has ended and its losses are told, while messages go on.
  void wait_for_device();

  /// How many Steps are taken together, from that place in the list on: those that follow one another, for a device of
  /// its own memory, which is then waited for once and told of one launch.
  std::size_t count_together(std::size_t place) const;

  /// What is decided by numbers of the device waits for them.
  void step(std::span<const planner::Instruction> instructions);
  Adapter& adapter_of(const planner::Instruction& instruction) const;
  const workload::Optimizer& optimizer_of(const planner::Instruction& instruction) const;

  /// Reports a global batch of which all has been computed, and gives the factor of its gradient; nothing where no step
  /// is to be taken.
  std::optional<double> finish_batch(const planner::Instruction& instruction, std::span<const double> norms_here);

  Runner& runner_;

  // Of the Program that runs.
  const planner::Program* program_ = nullptr;
  const planner::StageProgram* stage_ = nullptr;
  std::vector<std::int64_t> ahead_;
  const planner::StageTurns* turns_ = nullptr;
  std::vector<ChannelReceives> channels_;
  std::map<planner::BatchKey, StepReport> steps_;

  // What outlives it.
  Streams streams_;
  std::map<planner::InstructionId, Arrival> arrivals_;  // per receive
  std::vector<std::int64_t> held_;                      // of them, per channel
  std::map<planner::MicrobatchId, Buffer> results_;     // computed, not yet sent
  std::map<planner::TaskIndex, GatheredNorms> norms_;
  std::map<planner::TaskIndex, std::list<GatheredSums>> sums_;  // exact ones of gradients, since the last step
  std::set<planner::TaskIndex> stopped_;                        // diverged
};

}  // namespace braid::exec
