#pragma once

#include <functional>
#include <map>

#include "exec/objectives/task_objectives.h"
#include "exec/rank_place.h"
#include "exec/ranks/communicator.h"
#include "exec/run_input.h"
#include "exec/stage_model.h"
#include "planner/latency/launch_turns.h"
#include "planner/program/batch_key.h"
#include "planner/program/timeline.h"
#include "planner/window/window.h"

namespace braid::exec {

/// What the step of one task's global batch left behind on this rank.
struct StepReport {
  BatchLoss loss;                     ///< of this replica's samples, on one rank of its last stage; zeros elsewhere
  std::vector<double> squared_norms;  ///< per layer of the backbone, of the gradient; 0 where another rank tells
  bool diverged = false;  ///< its loss or gradient was not finite, or that of a step before it: none was taken here
};

/// What one Program left behind on this rank.
struct RunReport {
  /// Of this rank, in list order, since the runner's zero: what has ended, of earlier Programs what had not yet.
  std::vector<planner::Event> events;
  std::vector<planner::MemorySample> memory;      ///< what activations and messages hold after each compute instruction
  std::map<planner::BatchKey, StepReport> steps;  ///< one for each Step, the same ones on every rank
};

/// The frozen weights that a rank holds, while no runner does.
struct HeldBackbone {
  std::int32_t shard = 0, shards = 1;
  std::vector<KeptWeights> copies;  ///< none where they are in shares
};

/// Executes Programs on this rank: kernels for compute, messages and collectives that go on while it computes.
///
/// Where a Forward or Backward is of several microbatches that shards compute, these take turns: what one has to be
/// summed up goes on while another computes (MuxTune §3.4.2). The turns are those that the planner finds (LaunchTurns),
/// or without them one microbatch after another; the same on all shards.
///
/// The rank walks its list in order. Compute instructions are told to the device, which may run them later; sends,
/// receives and collectives start once the device has come so far, and whoever waits for one of these asks until it is
/// done. Devices that tell each other their numbers (Device::has_groups) are told of these as well, and wait
/// themselves. At each Step the rank waits for the device, as what is done there depends on its numbers. Each channel
/// keeps as many receives posted ahead as `most_waiting_messages` says, so that no sender is held up. A Program's list
/// is therefore run just as a replay runs it.
class Runner {
 public:
  /// Loads this rank's stage into `device`, which outlives the runner as the input does; what `held` has of it, of the
  /// same backbone, rank and device, is not loaded again. Tasks that the plan has no hTask of have no adapter. Throws
  /// Error as check_executable does, and when the ranks are not the plan's.
  Runner(const RunInput& input, Communicator& communicator, kernels::Device& device, HeldBackbone held = {});
  ~Runner();

  /// Its frozen weights, for a runner of another plan; this one runs no more.
  HeldBackbone release_backbone() &&;
  /// Layers that were loaded, of all copies, and not held before.
  std::int64_t loaded_layers() const { return loaded_layers_; }

  /// Of a slice of a stream, the one after those that ran before. Waits for all that goes on beside computing only
  /// where the Program says that nothing is under way after it; else that goes on while the next one runs.
  RunReport run(const planner::Program& program);
  /// As above, where only this rank's list need be there: `ahead` is what most_waiting_messages says of the whole.
  /// `turns` may leave any instruction out; all shards are given the same.
  RunReport run(const planner::Program& program, std::span<const std::int64_t> ahead,
                const planner::StageTurns& turns = {});

  /// Scores the pairs of these windows (of all: none named) by the adapters as they are, which the tasks whose
  /// objective compares with how they began will be compared with. All ranks call this, with nothing under way.
  /// `tell` is told of each task, and how many pairs, before.
  void score_references(std::span<const std::int64_t> windows,
                        const std::function<void(planner::TaskIndex task, std::size_t pairs)>& tell);

  /// What the task's objective comes to on the samples that it is evaluated on, by its adapter as it is and without
  /// dropout; the same on all ranks. All call this, with nothing under way.
  BatchLoss evaluate(planner::TaskIndex task);

  /// How long a rank waits while nothing comes on, before it throws Failure: another has stopped, or hangs.
  void set_patience(double seconds) { patience_ = seconds; }

  /// Has the task take no further Step.
  void stop(planner::TaskIndex task);

  /// By task; null of those that the plan has no hTask of.
  std::vector<std::unique_ptr<Adapter>>& adapters() { return adapters_; }
  /// Of Program::stages.
  planner::StageIndex stage() const { return place_.program; }
  kernels::Device& device() const { return pool_.device(); }
  /// Of all ranks.
  const std::vector<RankPlace>& places() const { return places_; }
  BufferPool& pool() { return pool_; }
  Probe& probe() { return probe_; }
  StageModel& model(std::size_t copy) { return *models_[copy]; }
  /// Bytes of other ranks' weights that the system counts as this process's too.
  Bytes mapped_weights() const { return models_.front()->mapped_weights(); }

 private:
  class Execution;

  References score(planner::TaskIndex task, std::span<const std::int64_t> samples);
  void open_paths(const planner::Program& program);

  RunInput input_;
  std::unique_ptr<Communicator> devices_;  // where the devices tell each other their numbers
  Communicator* communicator_;
  std::vector<RankPlace> places_;  // of all ranks
  RankPlace place_;
  BufferPool pool_;
  Probe probe_;
  std::vector<std::unique_ptr<StageModel>> models_;  // one a backbone copy
  std::int64_t loaded_layers_ = 0;
  std::vector<std::unique_ptr<Adapter>> adapters_;  // per task
  std::vector<std::uint64_t> seeds_;                // per task
  TaskObjectives objectives_;
  std::vector<std::unique_ptr<CommunicatorGroup>> groups_;  // of the Program
  std::unique_ptr<CommunicatorGroup> shards_;               // of the stage, where there are several
  std::unique_ptr<Execution> execution_;                    // from the first Program on
  double patience_ = 3600;                                  // seconds
  std::int64_t zero_ = 0;                                   // of the clock
};

}  // namespace braid::exec
