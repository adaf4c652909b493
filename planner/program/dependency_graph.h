#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <boost/graph/compressed_sparse_row_graph.hpp>

#include "planner/program/program.h"

namespace braid::planner {

/// Who waits for whom in a slice, told from the definitions alone: stream order, waits, a receive for its send, all
/// members of a meeting for each other.
class DependencyGraph {
 public:
  using Vertex = std::uint32_t;
  struct Place {
    StageIndex stage = 0;
    std::uint32_t position = 0;
  };

  /// Needs matching sends and receives, and groups whose members meet equally often.
  explicit DependencyGraph(const Program& program);

  /// All members of a meeting are one vertex.
  Vertex vertex(StageIndex stage, std::size_t position) const {
    return vertices_[static_cast<std::size_t>(stage)][position];
  }
  std::size_t size() const { return places_.size(); }

  template <typename Visit>
  void for_successors(Vertex vertex, const Visit& visit) const {
    for (auto [next, end] = boost::adjacent_vertices(vertex, edges_); next != end; ++next) visit(*next);
  }

  /// Predecessors before successors; nothing when some wait for each other in a circle.
  std::optional<std::vector<Vertex>> topological_order() const;
  /// Instructions of one circle, when there is one.
  std::vector<Place> circle() const;

 private:
  using Edges = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                                   boost::no_property, Vertex, Vertex>;

  void place_vertices(const Program& program);
  std::vector<std::pair<Vertex, Vertex>> edges_of(const Program& program) const;

  std::vector<std::vector<Vertex>> vertices_;  // per stage, per place
  std::vector<Place> places_;                  // per vertex, one instruction of it
  Edges edges_;
};

/// Per channel, the most messages that can have been sent and whose consumer (the instruction that waits for the
/// receive) has not ended, whatever the durations. An executor that posts as many receives ahead never holds a sender
/// up.
std::vector<std::int64_t> most_waiting_messages(const Program& program);

}  // namespace braid::planner
