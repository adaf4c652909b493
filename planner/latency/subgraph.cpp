#include "planner/latency/subgraph.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include <boost/pending/disjoint_sets.hpp>

#include "base/error.h"

namespace braid::planner {
namespace {

template <typename Visit>
void for_predecessors(const OperatorGraph& graph, OperatorVertex vertex, const Visit& visit) {
  for (auto [edge, last] = boost::in_edges(vertex, graph); edge != last; ++edge) visit(boost::source(*edge, graph));
}

/// Adapters that no communication waits for, neither for what follows them among the adapters of their product.
std::vector<bool> isolated_adapters(const OperatorGraph& graph) {
  std::vector<bool> isolated(boost::num_vertices(graph), false);
  for (OperatorVertex vertex = isolated.size(); vertex-- > 0;) {
    isolated[vertex] = graph[vertex].adapter;
    for (auto [edge, last] = boost::out_edges(vertex, graph); edge != last; ++edge) {
      const OperatorVertex next = boost::target(*edge, graph);
      if (graph[next].communication || (graph[next].adapter && !isolated[next])) isolated[vertex] = false;
    }
  }
  return isolated;
}

/// Vertices by subgraph. A vertex's level is how often a way to it must leave one subgraph for another: after
/// communication, and into and out of isolated adapters. Neighbours of one level are of one subgraph, in the graph or
/// in the stage's order. All other edges lead to higher levels, so that subgraphs cannot wait for one another in a
/// circle, and a level is a depth.
class Segmentation {
 public:
  Segmentation(const OperatorGraph& graph, Adapters adapters)
      : graph_(graph), levels_(boost::num_vertices(graph), 0), rank_(levels_.size()), root_(levels_.size()) {
    isolated_ = adapters == Adapters::isolated ? isolated_adapters(graph) : std::vector<bool>(levels_.size(), false);
    for (OperatorVertex vertex = 0; vertex < levels_.size(); ++vertex) place(vertex);
  }

  std::vector<Subgraph> subgraphs() {
    std::vector<OperatorVertex> order(levels_.size());
    std::iota(order.begin(), order.end(), OperatorVertex{0});
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return levels_[a] < levels_[b]; });
    constexpr SubgraphIndex kNone = -1;
    std::vector<SubgraphIndex> of_root(levels_.size(), kNone), of(levels_.size());
    std::vector<Subgraph> result;
    for (const OperatorVertex vertex : order) {
      SubgraphIndex& index = of_root[sets_.find_set(vertex)];
      if (index == kNone) {
        index = static_cast<SubgraphIndex>(result.size());
        Subgraph& made = result.emplace_back();
        made.parts = {{graph_[vertex].htask, {}}};
        made.adapters = isolated_[vertex];
        made.depth = levels_[vertex];
      }
      of[vertex] = index;
      add(vertex, of, result[static_cast<std::size_t>(index)]);
    }
    for (Subgraph& subgraph : result) {
      std::vector<SubgraphIndex>& before = subgraph.predecessors;
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
    }
    return result;
  }

 private:
  void place(OperatorVertex vertex) {
    sets_.make_set(vertex);
    std::int32_t& level = levels_[vertex];
    for_predecessors(graph_, vertex, [&](OperatorVertex before) {
      BRAID_CHECK(before < vertex, "operator {} waits for {}, which stands behind it", vertex, before);
      level = std::max(level, levels_[before] + (leaves(before, vertex) ? 1 : 0));
    });
    for_predecessors(graph_, vertex, [&](OperatorVertex before) {
      if (levels_[before] == level) sets_.union_set(before, vertex);
    });
    if (isolated_[vertex]) {
      // Those of one product beside one another.
      if (last_isolated_ && alike(*last_isolated_, vertex)) sets_.union_set(*last_isolated_, vertex);
      last_isolated_ = vertex;
    } else if (graph_[vertex].communication) {
      last_computed_.reset();
    } else {
      // What the stage computes without communication in between, though neither needs the other.
      if (last_computed_ && levels_[*last_computed_] == level) sets_.union_set(*last_computed_, vertex);
      last_computed_ = vertex;
    }
  }

  bool leaves(OperatorVertex from, OperatorVertex to) const {
    return isolated_[from] != isolated_[to] || (graph_[from].communication && !graph_[to].communication);
  }
  bool alike(OperatorVertex a, OperatorVertex b) const {
    return graph_[a].layer == graph_[b].layer && graph_[a].group == graph_[b].group && levels_[a] == levels_[b];
  }

  void add(OperatorVertex vertex, const std::vector<SubgraphIndex>& of, Subgraph& subgraph) const {
    const OperatorNode& node = graph_[vertex];
    subgraph.parts.front().vertices.push_back(vertex);
    (node.communication ? subgraph.communication : subgraph.compute) += node.latency;
    for_predecessors(graph_, vertex, [&](OperatorVertex before) {
      if (of[before] != of[vertex]) subgraph.predecessors.push_back(of[before]);
    });
  }

  const OperatorGraph& graph_;
  std::vector<bool> isolated_;
  std::vector<std::int32_t> levels_;
  std::vector<std::size_t> rank_, root_;
  boost::disjoint_sets<std::size_t*, std::size_t*> sets_{rank_.data(), root_.data()};
  std::optional<OperatorVertex> last_isolated_;
  std::optional<OperatorVertex> last_computed_;  // since communication
};

}  // namespace

std::vector<Subgraph> segment(const OperatorGraph& graph, Adapters adapters) {
  return Segmentation(graph, adapters).subgraphs();
}

std::vector<Subgraph> joined(std::span<const std::vector<Subgraph>> htasks) {
  std::vector<Subgraph> all;
  for (const std::vector<Subgraph>& subgraphs : htasks) {
    const auto shift = static_cast<SubgraphIndex>(all.size());
    all.insert(all.end(), subgraphs.begin(), subgraphs.end());
    for (std::size_t i = static_cast<std::size_t>(shift); i < all.size(); ++i) {
      for (SubgraphIndex& before : all[i].predecessors) before += shift;
    }
  }
  return all;
}

}  // namespace braid::planner
