#include "planner/latency/adapter_fusion.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "base/error.h"

namespace braid::planner {
namespace {

using costmodel::MicrobatchLoad;
using costmodel::Operator;
using costmodel::OperatorCall;

Nanoseconds fused_time(const Subgraph& subgraph, std::span<const OperatorGraph* const> graphs,
                       const LaunchPricing& pricing) {
  std::vector<OperatorCall> calls;
  Nanoseconds others = 0;
  for (const SubgraphPart& part : subgraph.parts) {
    for (const OperatorVertex vertex : part.vertices) {
      const OperatorNode& node = (*graphs[place(part.htask)])[vertex];
      if (node.calls.front().op == Operator::split_gradient) {
        others += node.latency;
        continue;
      }
      for (const OperatorCall& call : node.calls) {
        calls.push_back(call);
        calls.back().beside = calls.size() > 1;
      }
    }
  }
  return pricing(calls) + others;
}

/// Sets depths and puts the subgraphs in their order.
std::vector<Subgraph> in_order_of_depth(std::vector<Subgraph> subgraphs) {
  std::vector<std::vector<std::size_t>> successors(subgraphs.size());
  std::vector<std::size_t> waiting, ready;
  for (std::size_t i = 0; i < subgraphs.size(); ++i) {
    subgraphs[i].depth = 0;
    waiting.push_back(subgraphs[i].predecessors.size());
    for (const SubgraphIndex before : subgraphs[i].predecessors) successors[place(before)].push_back(i);
    if (waiting[i] == 0) ready.push_back(i);
  }
  for (std::size_t next = 0; next < ready.size(); ++next) {
    for (const std::size_t after : successors[ready[next]]) {
      subgraphs[after].depth = std::max(subgraphs[after].depth, subgraphs[ready[next]].depth + 1);
      if (--waiting[after] == 0) ready.push_back(after);
    }
  }
  BRAID_CHECK(ready.size() == subgraphs.size(), "fused adapters wait for one another in a circle");
  std::vector<SubgraphIndex> order(subgraphs.size()), places(subgraphs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](SubgraphIndex a, SubgraphIndex b) {
    return subgraphs[place(a)].depth < subgraphs[place(b)].depth;
  });
  std::vector<Subgraph> sorted;
  for (const SubgraphIndex index : order) {
    places[place(index)] = static_cast<SubgraphIndex>(sorted.size());
    sorted.push_back(std::move(subgraphs[place(index)]));
    for (SubgraphIndex& before : sorted.back().predecessors) before = places[place(before)];
    std::sort(sorted.back().predecessors.begin(), sorted.back().predecessors.end());
  }
  return sorted;
}

}  // namespace

bool single_tasks(std::span<const MicrobatchLoad> htasks) {
  return std::all_of(htasks.begin(), htasks.end(), [](const MicrobatchLoad& load) { return load.tasks.size() == 1; });
}

std::vector<Subgraph> fuse_adapters(std::span<const Subgraph> subgraphs, std::span<const OperatorGraph* const> graphs,
                                    std::span<const MicrobatchLoad> htasks, const LaunchPricing& pricing) {
  if (!single_tasks(htasks)) return {subgraphs.begin(), subgraphs.end()};
  // Layers and products follow one another alike in all hTasks, so that fusing makes no circle.
  std::map<std::tuple<std::int32_t, costmodel::ModuleGroup, bool>, SubgraphIndex> of_product;
  std::vector<Subgraph> fused;
  std::vector<SubgraphIndex> places;
  for (const Subgraph& subgraph : subgraphs) {
    const auto next = static_cast<SubgraphIndex>(fused.size());
    SubgraphIndex here = next;
    if (subgraph.adapters) {
      const OperatorNode& node = (*graphs[place(subgraph.htask())])[subgraph.parts.front().vertices.front()];
      // A layer that is computed again has each product twice.
      const bool forward = node.calls.front().pass == costmodel::Pass::forward;
      here = of_product.try_emplace({node.layer, node.group, forward}, next).first->second;
    }
    places.push_back(here);
    if (here == next) {
      fused.push_back(subgraph);
      continue;
    }
    Subgraph& whole = fused[place(here)];
    whole.parts.insert(whole.parts.end(), subgraph.parts.begin(), subgraph.parts.end());
  }
  for (Subgraph& subgraph : fused) subgraph.predecessors.clear();
  for (std::size_t i = 0; i < subgraphs.size(); ++i) {
    std::vector<SubgraphIndex>& predecessors = fused[place(places[i])].predecessors;
    for (const SubgraphIndex before : subgraphs[i].predecessors) predecessors.push_back(places[place(before)]);
  }
  for (Subgraph& subgraph : fused) {
    std::vector<SubgraphIndex>& before = subgraph.predecessors;
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    if (subgraph.parts.size() > 1) subgraph.compute = fused_time(subgraph, graphs, pricing);
  }
  return in_order_of_depth(std::move(fused));
}

}  // namespace braid::planner
