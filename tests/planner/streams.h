#pragma once

#include <numeric>
#include <string>

#include "planner/program/cut.h"
#include "planner/program/lower.h"
#include "planner/program/timeline.h"
#include "planner/verify/verify.h"

// Small schedules that tests of the planner and the simulator share.
namespace braid::planner::testing {

inline constexpr std::int32_t kSampleTokens = 16;

/// Tasks whose global batches follow one another without end: `microbatches` single-sample microbatches each, tasks in
/// turn, `rounds` global batches of every task.
struct StreamShape {
  int stages = 1;
  int tasks = 1;
  int microbatches = 1;
  int rounds = 1;
  bool clips = false;
  int replicas = 1;
  bool blocking_messages = false;
};

inline std::vector<Microbatch> microbatches_of(const StreamShape& shape) {
  std::vector<Microbatch> result;
  MicrobatchId id = 0;
  for (int round = 0; round < shape.rounds; ++round) {
    for (int task = 0; task < shape.tasks; ++task) {
      for (int m = 0; m < shape.microbatches; ++m) {
        for (int replica = 0; replica < shape.replicas; ++replica) {
          const int index = m * shape.replicas + replica;
          Segment segment;
          segment.task = task;
          segment.global_batch = round;
          segment.index = index;
          segment.sample = round * 1000 + task * 100 + index;
          segment.end = kSampleTokens;
          segment.scored = kSampleTokens - 1;
          result.push_back({id++, replica, {segment}});
        }
      }
    }
  }
  return result;
}

inline std::vector<MicrobatchId> ids_of(const std::vector<Microbatch>& microbatches, int replica) {
  std::vector<MicrobatchId> ids;
  for (const Microbatch& microbatch : microbatches) {
    if (microbatch.replica == replica) ids.push_back(microbatch.id);
  }
  return ids;
}

/// Where the n-th global batches of all tasks end.
inline std::vector<std::size_t> end_of_round(const Program& program, std::int64_t round) {
  const std::vector<std::int64_t> next_batch(program.before.stages.front().next_batch.size(), round + 1);
  return end_of_window(program, next_batch);
}

enum class Template { gpipe, one_forward_one_backward };

inline Schedule schedule_of(const StreamShape& shape, Template order) {
  Schedule schedule;
  for (int r = 0; r < shape.replicas; ++r) {
    ReplicaShape replica;
    for (int s = 0; s < shape.stages; ++s) replica.layers.push_back({s, s + 1});
    schedule.replicas.push_back(replica);
  }
  schedule.tasks.assign(static_cast<std::size_t>(shape.tasks), TaskRules{shape.clips});
  schedule.microbatches = microbatches_of(shape);
  schedule.next_batch.assign(static_cast<std::size_t>(shape.tasks), 0);
  schedule.bytes_per_token = 4;
  schedule.blocking_messages = shape.blocking_messages;
  for (int r = 0; r < shape.replicas; ++r) {
    const std::vector<MicrobatchId> ids = ids_of(schedule.microbatches, r);
    std::vector<StageOrder>& orders = schedule.orders.emplace_back();
    for (int s = 0; s < shape.stages; ++s) {
      orders.push_back(order == Template::gpipe ? gpipe_order(ids)
                                                : one_forward_one_backward_order(ids, s, shape.stages));
    }
  }
  return schedule;
}

inline VerifyContext context_of(const StreamShape& shape) {
  VerifyContext context;
  context.expected = [shape](TaskIndex task, std::int64_t batch) {
    std::vector<ExpectedSample> samples;
    for (int i = 0; i < shape.microbatches * shape.replicas; ++i)
      samples.push_back({batch * 1000 + task * 100 + i, kSampleTokens});
    return samples;
  };
  context.tasks.assign(static_cast<std::size_t>(shape.tasks), TaskRules{shape.clips});
  context.memory.backbone = costmodel::builtin_backbone("tinyllama-1.1b");
  context.memory.adapters.assign(static_cast<std::size_t>(shape.tasks),
                                 costmodel::AdapterShape{8, 16, false, 0, {true, true, true, true}});
  return context;
}

/// Durations by kind and stage.
struct Costs {
  std::vector<Nanoseconds> forward;  // per stage
  std::vector<Nanoseconds> backward;
  Nanoseconds send = 0;
  Nanoseconds norm = 0;
  Nanoseconds step = 0;
  Nanoseconds sync = 0;
};

inline Durations durations_of(const Program& program, const Costs& costs) {
  Durations durations;
  for (const StageProgram& stage : program.stages) {
    std::vector<Nanoseconds>& times = durations.stages.emplace_back();
    const auto s = static_cast<std::size_t>(stage.stage);
    for (const Instruction& instruction : stage.instructions) {
      switch (instruction.kind) {
        case Kind::forward:
          times.push_back(costs.forward[s]);
          break;
        case Kind::backward:
          times.push_back(costs.backward[s]);
          break;
        case Kind::send_activation:
        case Kind::send_gradient:
          times.push_back(costs.send);
          break;
        case Kind::reduce_norm:
          times.push_back(costs.norm);
          break;
        case Kind::sync_adapter:
          times.push_back(costs.sync);
          break;
        case Kind::step:
          times.push_back(costs.step);
          break;
        default:
          times.push_back(0);
      }
    }
  }
  return durations;
}

inline Costs even_costs(int stages, Nanoseconds forward, Nanoseconds backward, Nanoseconds send) {
  Costs costs;
  costs.forward.assign(static_cast<std::size_t>(stages), forward);
  costs.backward.assign(static_cast<std::size_t>(stages), backward);
  costs.send = send;
  return costs;
}

inline std::string messages_of(const std::vector<Violation>& violations) {
  std::string text;
  for (const Violation& violation : violations)
    text += std::string(name(violation.rule)) + ": " + violation.message + "\n";
  return text;
}

}  // namespace braid::planner::testing
