#pragma once

#include <map>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "costmodel/work/memory.h"
#include "planner/program/load.h"
#include "tasks.h"

/// What cost and memory models say of a pass, held against the pass.
namespace braid::exec {

inline const std::vector<costmodel::Recompute> kRecomputes = {{},
                                                              {costmodel::RecomputeKind::selective, 1},
                                                              {costmodel::RecomputeKind::selective, 2},
                                                              {costmodel::RecomputeKind::full, 1},
                                                              {costmodel::RecomputeKind::full, 2}};

/// A pass of all tasks' samples is the work that is charged for it.
inline void expect_charged_work(Tasks& tasks) {
  std::vector<planner::TaskIndex> all;
  for (std::size_t t = 0; t < tasks.shapes.size(); ++t) all.push_back(static_cast<planner::TaskIndex>(t));
  const planner::Microbatch microbatch = tasks.microbatch(all);
  const costmodel::MicrobatchLoad load = planner::load_of(microbatch, tasks.shapes);
  const costmodel::StageShape stage{tasks.golden.backbone.layers, true, true};
  TokenLosses losses = tasks.token_losses();
  tasks.golden.probe.record(true);
  for (const costmodel::Pass pass : {costmodel::Pass::forward, costmodel::Pass::backward}) {
    if (pass == costmodel::Pass::forward) {
      run_whole(tasks.golden.model.forward(0, make_batch(microbatch, tasks.datasets), {}, tasks.adapters, tasks.seeds,
                                           losses));
    } else {
      run_whole(tasks.golden.model.backward(0, {}, tasks.adapters, tasks.seeds));
    }
    // Attention is charged by sequence and done for all rows at once.
    using Key = std::tuple<costmodel::Operator, costmodel::Pass, costmodel::OperatorShape, std::int64_t>;
    std::map<Key, double> charged, done;
    double attended_charged = 0, attended_done = 0;
    for (const costmodel::OperatorCall& call :
         costmodel::stage_operators(tasks.golden.backbone, stage, load, pass, costmodel::cpu_storage())) {
      if (call.op == costmodel::Operator::dispatch) continue;
      if (call.op == costmodel::Operator::attention)
        attended_charged += call.count * static_cast<double>(call.sequences * call.tokens);
      else
        charged[{call.op, call.pass, call.shape, call.tokens}] += call.count;
    }
    for (const Probe::Record& record : tasks.golden.probe.take_records()) {
      if (record.call.op == costmodel::Operator::attention)
        attended_done += static_cast<double>(record.call.tokens);
      else
        done[{record.call.op, record.call.pass, record.call.shape, record.call.tokens}] += 1;
    }
    EXPECT_EQ(charged, done);
    EXPECT_EQ(attended_charged, attended_done);
  }
}

/// A pass takes the bytes that are predicted, to the last but for the rounding of buffers.
inline void expect_known_memory(Tasks& tasks, const planner::Microbatch& microbatch,
                                const costmodel::Recompute& recompute, const std::string& which,
                                const costmodel::Storage& storage = costmodel::cpu_storage()) {
  const std::string what = fmt::format("{} of {} layers, {}", name(recompute.kind), recompute.layers, which);
  const costmodel::MicrobatchLoad load = planner::load_of(microbatch, tasks.shapes);
  const costmodel::BackboneShape& backbone = tasks.golden.backbone;
  costmodel::StageShape stage{backbone.layers, true, true};
  stage.recompute = recompute;
  TokenLosses losses = tasks.token_losses();
  BufferPool& pool = tasks.golden.pool;
  run_whole(
      tasks.golden.model.forward(0, make_batch(microbatch, tasks.datasets), {}, tasks.adapters, tasks.seeds, losses));
  // Buffers begin on cache lines.
  const Bytes rounding = 64 * 30 * (stage.layers + 1);
  const Bytes stash = costmodel::stash_bytes(backbone, stage, load, storage);
  EXPECT_GE(pool.in_use(), stash) << what;
  EXPECT_LE(pool.in_use(), stash + rounding) << what;
  const Bytes forward = stash + costmodel::workspace_bytes(backbone, stage, load, costmodel::Pass::forward, storage);
  EXPECT_GE(pool.peak(), forward) << what;
  EXPECT_LE(pool.peak(), forward + rounding) << what;
  run_whole(tasks.golden.model.backward(0, {}, tasks.adapters, tasks.seeds));
  const Bytes whole =
      std::max(forward, stash + costmodel::workspace_bytes(backbone, stage, load, costmodel::Pass::backward, storage));
  EXPECT_EQ(pool.in_use(), 0);
  EXPECT_GE(pool.peak(), whole) << what;
  EXPECT_LE(pool.peak(), whole + rounding) << what;
}

}  // namespace braid::exec
