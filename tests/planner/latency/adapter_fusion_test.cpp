#include "planner/latency/adapter_fusion.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/latency/subgraph_schedule.h"
#include "planner/stages.h"

namespace braid::planner {
namespace {

using costmodel::AdapterKernels;
using costmodel::AdapterShape;
using costmodel::MicrobatchLoad;
using costmodel::ModuleGroup;
using costmodel::Pass;

struct Bucket {
  std::vector<MicrobatchLoad> loads;
  std::vector<OperatorGraph> graphs;
  std::vector<Subgraph> subgraphs;

  std::vector<const OperatorGraph*> pointers() const {
    std::vector<const OperatorGraph*> all;
    for (const OperatorGraph& graph : graphs) all.push_back(&graph);
    return all;
  }
  std::vector<Subgraph> fused() const { return fuse_adapters(subgraphs, pointers(), loads, made_up_pricing()); }
  const OperatorNode& first_node(const SubgraphPart& part) const {
    return graphs[static_cast<std::size_t>(part.htask)][part.vertices.front()];
  }
};

Bucket bucket_of(const AnyStage& any, std::vector<MicrobatchLoad> loads) {
  Bucket bucket{std::move(loads), {}, {}};
  std::vector<std::vector<Subgraph>> each;
  for (const MicrobatchLoad& load : bucket.loads) {
    bucket.graphs.push_back(graph_of(any, load, static_cast<std::int32_t>(bucket.graphs.size())));
    each.push_back(segment(bucket.graphs.back()));
  }
  bucket.subgraphs = joined(each);
  return bucket;
}

std::vector<MicrobatchLoad> any_single_tasks() {
  std::vector<MicrobatchLoad> loads(*rc::gen::inRange<std::size_t>(1, 5));
  for (MicrobatchLoad& load : loads) load = any_load(1, any_kernels());
  return loads;
}

RC_GTEST_PROP(AdapterFusion, KeepsEveryOperatorOnceAndAllThatItWaitsFor, ()) {
  const Bucket bucket = bucket_of(any_stage(), any_single_tasks());
  const std::vector<Subgraph> fused = bucket.fused();
  std::map<std::pair<std::int32_t, OperatorVertex>, SubgraphIndex> place;
  std::size_t operators = 0;
  for (std::size_t i = 0; i < fused.size(); ++i) {
    for (const SubgraphPart& part : fused[i].parts) {
      for (const OperatorVertex v : part.vertices) RC_ASSERT(place.try_emplace({part.htask, v}, i).second);
    }
    std::int32_t depth = 0;
    for (const SubgraphIndex before : fused[i].predecessors) {
      RC_ASSERT(static_cast<std::size_t>(before) < i);
      depth = std::max(depth, fused[static_cast<std::size_t>(before)].depth + 1);
    }
    RC_ASSERT(fused[i].depth == depth);
  }
  for (std::size_t h = 0; h < bucket.graphs.size(); ++h) {
    const auto htask = static_cast<std::int32_t>(h);
    operators += boost::num_vertices(bucket.graphs[h]);
    for (auto [edge, last] = boost::edges(bucket.graphs[h]); edge != last; ++edge) {
      const SubgraphIndex from = place.at({htask, boost::source(*edge, bucket.graphs[h])});
      const SubgraphIndex to = place.at({htask, boost::target(*edge, bucket.graphs[h])});
      const std::vector<SubgraphIndex>& before = fused[static_cast<std::size_t>(to)].predecessors;
      RC_ASSERT(from == to || std::binary_search(before.begin(), before.end(), from));
    }
  }
  RC_ASSERT(place.size() == operators);
}

RC_GTEST_PROP(AdapterFusion, TakesNoLongerThanTheAdaptersOneByOneNorLessThanTheLongest, ()) {
  const Bucket bucket = bucket_of(any_stage(), any_single_tasks());
  const std::vector<Subgraph> fused = bucket.fused();
  RC_ASSERT(sequential_time(fused) <= sequential_time(bucket.subgraphs));
  for (const Subgraph& subgraph : fused) {
    Nanoseconds longest = 0, sum = 0;
    for (const Subgraph& one : bucket.subgraphs) {
      if (std::find(subgraph.parts.begin(), subgraph.parts.end(), one.parts.front()) == subgraph.parts.end()) continue;
      longest = std::max(longest, one.compute);
      sum += one.compute;
    }
    RC_ASSERT(subgraph.compute >= longest);
    RC_ASSERT(subgraph.compute <= sum);
    RC_ASSERT(subgraph.parts.size() > 1 || subgraph.compute == sum);
  }
}

RC_GTEST_PROP(AdapterFusion, FusesJustTheAdaptersOfOneProductOfOneLayerThatNoCollectiveWaitsFor, ()) {
  const AnyStage any = any_stage();
  const Bucket bucket = bucket_of(any, any_single_tasks());
  std::map<std::tuple<std::int32_t, ModuleGroup, bool>, int> launches;
  for (const Subgraph& subgraph : bucket.fused()) {
    RC_ASSERT(subgraph.adapters || subgraph.parts.size() == 1U);
    if (!subgraph.adapters) continue;
    RC_ASSERT(subgraph.communication == 0);
    const OperatorNode& first = bucket.first_node(subgraph.parts.front());
    const auto goes_forward = [](const OperatorNode& node) { return node.calls.front().pass == Pass::forward; };
    const int here = ++launches[std::tuple(first.layer, first.group, goes_forward(first))];
    RC_ASSERT(here == 1);
    for (const SubgraphPart& part : subgraph.parts) {
      RC_ASSERT(bucket.first_node(part).layer == first.layer);
      RC_ASSERT(bucket.first_node(part).group == first.group);
      RC_ASSERT(goes_forward(bucket.first_node(part)) == goes_forward(first));
      const OperatorGraph& graph = bucket.graphs[static_cast<std::size_t>(part.htask)];
      for (const OperatorVertex v : part.vertices) {
        for (const OperatorVertex after : successors_of(graph, v)) RC_ASSERT(!graph[after].communication);
      }
    }
  }
}

/// Per product whose adapters are isolated, of how many of three hTasks' their subgraph is.
std::map<ModuleGroup, std::size_t> fused_parts(const AnyStage& any, std::int32_t layer) {
  std::vector<MicrobatchLoad> loads;
  for (const std::int64_t length : {40, 60, 80}) loads.push_back(load_of(costmodel::adapter_on_all(4), {length}));
  const Bucket bucket = bucket_of(any, loads);
  std::map<ModuleGroup, std::size_t> parts;
  for (const Subgraph& subgraph : bucket.fused()) {
    const OperatorNode& first = bucket.first_node(subgraph.parts.front());
    if (subgraph.adapters && first.layer == layer) parts[first.group] = subgraph.parts.size();
  }
  return parts;
}

TEST(AdapterFusion, WhatIsFusibleWithTensorParallelismAndWithout) {
  using Parts = std::map<ModuleGroup, std::size_t>;
  AnyStage any{costmodel::small_backbone(), {2, true, false, 1}, Pass::forward, {}};
  const Parts all = {{ModuleGroup::qkv, 3}, {ModuleGroup::o, 3}, {ModuleGroup::gate_up, 3}, {ModuleGroup::down, 3}};
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    any.pass = pass;
    for (const std::int32_t layer : {0, 1}) EXPECT_EQ(fused_parts(any, layer), all);
  }
  any.stage.tp = 2;
  for (const bool sequence_parallel : {false, true}) {
    any.stage.sequence_parallel = sequence_parallel;
    any.pass = Pass::forward;
    for (const std::int32_t layer : {0, 1})
      EXPECT_EQ(fused_parts(any, layer), (Parts{{ModuleGroup::qkv, 3}, {ModuleGroup::gate_up, 3}}));
    any.pass = Pass::backward;
    EXPECT_EQ(fused_parts(any, 1), (Parts{{ModuleGroup::o, 3}, {ModuleGroup::down, 3}}));
    EXPECT_EQ(fused_parts(any, 0), (Parts{{ModuleGroup::qkv, 3}, {ModuleGroup::o, 3}, {ModuleGroup::down, 3}}));
  }
}

TEST(AdapterFusion, HTasksOfSeveralTasksAreLeftAlone) {
  const AnyStage any{costmodel::small_backbone(), {2, true, true, 1}, Pass::forward, {}};
  const AdapterShape adapter = costmodel::adapter_on_all(4);
  MicrobatchLoad two = together(load_of(adapter, {30}), load_of(adapter, {50}));
  two.kernels = AdapterKernels::side_by_side;
  const Bucket bucket = bucket_of(any, {load_of(adapter, {40}), two});
  EXPECT_FALSE(single_tasks(bucket.loads));
  EXPECT_EQ(bucket.fused(), bucket.subgraphs);
}

RC_GTEST_PROP(AdapterFusion, SchedulesOfFusedBucketsKeepTheirBounds, ()) {
  const Bucket bucket = bucket_of(any_stage(), any_single_tasks());
  const std::vector<Subgraph> fused = bucket.fused();
  const LaunchSchedule made =
      schedule(fused, *rc::gen::element(LaunchRule::shallowest, LaunchRule::earliest_start), 1.1);
  RC_ASSERT(made.entries.size() == fused.size());
  RC_ASSERT(made.makespan <= sequential_time(fused));
  RC_ASSERT(made.makespan >= std::max(made.compute_busy, made.communication_busy));
}

RC_GTEST_PROP(AdapterFusion, AnHTaskAloneTakesTheSequentialTime, ()) {
  const AnyStage any = any_stage();
  const std::vector<Subgraph> subgraphs = segment(graph_of(any, any_load(*rc::gen::inRange(1, 4), any_kernels())),
                                                  *rc::gen::element(Adapters::isolated, Adapters::with_neighbours));
  const LaunchSchedule made = schedule(subgraphs, LaunchRule::shallowest, 1.1);
  RC_ASSERT(made.makespan == sequential_time(subgraphs));
  RC_ASSERT(made.exposed_communication == made.communication_busy);
}

}  // namespace
}  // namespace braid::planner
