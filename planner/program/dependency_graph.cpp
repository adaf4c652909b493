#include "planner/program/dependency_graph.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include <boost/graph/strong_components.hpp>
#include <boost/graph/topological_sort.hpp>

#include "base/error.h"

namespace braid::planner {
namespace {

constexpr DependencyGraph::Vertex kUnset = std::numeric_limits<DependencyGraph::Vertex>::max();

}  // namespace

DependencyGraph::DependencyGraph(const Program& program) {
  place_vertices(program);
  const std::vector<std::pair<Vertex, Vertex>> edges = edges_of(program);
  edges_ = Edges(boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(), static_cast<Vertex>(size()));
}

void DependencyGraph::place_vertices(const Program& program) {
  std::vector<std::vector<Vertex>> meetings(program.groups.size());  // per group, its meetings so far made
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const std::vector<Instruction>& instructions = program.stages[s].instructions;
    std::vector<Vertex>& mine = vertices_.emplace_back();
    std::vector<std::size_t> met(program.groups.size(), 0);
    for (std::uint32_t i = 0; i < instructions.size(); ++i) {
      Vertex vertex = kUnset;
      if (is_grouped(instructions[i].kind)) {
        const auto group = static_cast<std::size_t>(instructions[i].group);
        const std::size_t meeting = met[group]++;
        if (meeting < meetings[group].size()) vertex = meetings[group][meeting];
      }
      if (vertex == kUnset) {
        vertex = static_cast<Vertex>(places_.size());
        places_.push_back({static_cast<StageIndex>(s), i});
        if (is_grouped(instructions[i].kind))
          meetings[static_cast<std::size_t>(instructions[i].group)].push_back(vertex);
      }
      mine.push_back(vertex);
    }
  }
}

std::vector<std::pair<DependencyGraph::Vertex, DependencyGraph::Vertex>> DependencyGraph::edges_of(
    const Program& program) const {
  std::vector<std::vector<Vertex>> sends(program.channels.size());
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const std::vector<Instruction>& instructions = program.stages[s].instructions;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      if (is_send(instructions[i].kind))
        sends[static_cast<std::size_t>(instructions[i].channel)].push_back(vertices_[s][i]);
    }
  }
  std::vector<std::pair<Vertex, Vertex>> edges;
  std::vector<std::size_t> received(program.channels.size(), 0);
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const StageProgram& stage = program.stages[s];
    std::array<Vertex, kStreamCount> last;
    last.fill(kUnset);
    for (std::size_t i = 0; i < stage.instructions.size(); ++i) {
      const Instruction& instruction = stage.instructions[i];
      const Vertex vertex = vertices_[s][i];
      Vertex& before = last[static_cast<std::size_t>(instruction.stream)];
      if (before != kUnset) edges.emplace_back(before, vertex);
      before = vertex;
      for (const InstructionId id : stage.waits_of(instruction)) {
        if (id >= stage.first_id)
          edges.emplace_back(vertices_[s][static_cast<std::size_t>(id - stage.first_id)], vertex);
      }
      if (is_recv(instruction.kind)) {
        const auto channel = static_cast<std::size_t>(instruction.channel);
        const std::size_t message = received[channel]++;
        const std::size_t under_way = program.before.messages[channel].size();
        if (message >= under_way) edges.emplace_back(sends[channel].at(message - under_way), vertex);
      }
    }
  }
  return edges;
}

std::optional<std::vector<DependencyGraph::Vertex>> DependencyGraph::topological_order() const {
  std::vector<Vertex> order;
  order.reserve(size());
  try {
    boost::topological_sort(edges_, std::back_inserter(order));
  } catch (const boost::not_a_dag&) {
    return std::nullopt;
  }
  std::reverse(order.begin(), order.end());
  return order;
}

std::vector<DependencyGraph::Place> DependencyGraph::circle() const {
  std::vector<std::size_t> component(size());
  const std::size_t count = boost::strong_components(
      edges_, boost::make_iterator_property_map(component.begin(), boost::get(boost::vertex_index, edges_)));
  std::vector<std::size_t> sizes(count, 0);
  for (const std::size_t c : component) ++sizes[c];
  std::vector<Place> places;
  for (Vertex v = 0; v < size(); ++v) {
    bool loops = false;
    for_successors(v, [&](Vertex next) { loops = loops || next == v; });
    if (sizes[component[v]] < 2 && !loops) continue;
    if (!places.empty() && component[v] != component[vertex(places[0].stage, places[0].position)]) continue;
    places.push_back(places_[v]);
  }
  return places;
}

std::vector<std::int64_t> most_waiting_messages(const Program& program) {
  if (program.channels.empty()) return {};
  const DependencyGraph graph(program);
  const auto order = graph.topological_order();
  BRAID_CHECK(order.has_value(), "instructions wait for each other");
  const std::size_t stages = program.stages.size();
  // Per vertex and stage: how many entries of that stage's list are known to have ended when the vertex starts,
  // counting only entries of the compute stream (the consumers).
  std::vector<std::uint32_t> known(graph.size() * stages, 0);
  std::vector<std::vector<std::uint32_t>> ordinal(stages);  // per place: compute entries up to and with it
  struct Entry {
    std::size_t stage = 0;
    std::uint32_t ordinal = 0;  // 0: of no compute stream
  };
  std::vector<Entry> own(graph.size());
  for (std::size_t s = 0; s < stages; ++s) {
    std::uint32_t count = 0;
    const std::vector<Instruction>& instructions = program.stages[s].instructions;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].stream == Stream::compute) {
        ++count;
        own[graph.vertex(static_cast<StageIndex>(s), i)] = {s, count};
      }
      ordinal[s].push_back(count);
    }
  }
  for (const DependencyGraph::Vertex from : *order) {
    graph.for_successors(from, [&](DependencyGraph::Vertex to) {
      for (std::size_t s = 0; s < stages; ++s)
        known[to * stages + s] = std::max(known[to * stages + s], known[from * stages + s]);
      std::uint32_t& ended = known[to * stages + own[from].stage];
      ended = std::max(ended, own[from].ordinal);
    });
  }
  std::vector<std::int64_t> most(program.channels.size(), 0);
  for (std::size_t c = 0; c < program.channels.size(); ++c) {
    const auto receiver = static_cast<std::size_t>(program.channels[c].to);
    const auto sender = static_cast<std::size_t>(program.channels[c].from);
    // Per message, the ordinal of the compute entry that consumes it; messages nobody consumes here never leave.
    std::vector<std::uint32_t> consumers;
    const StageProgram& stage = program.stages[receiver];
    std::map<InstructionId, std::uint32_t> received_before;
    for (const Awaited& awaited : program.before.stages[receiver].awaited) {
      if (is_recv(awaited.kind) && static_cast<std::size_t>(awaited.channel) == c)
        received_before[awaited.id] = std::numeric_limits<std::uint32_t>::max();
    }
    std::vector<std::uint32_t> consumer_of(stage.instructions.size(), std::numeric_limits<std::uint32_t>::max());
    for (std::size_t i = 0; i < stage.instructions.size(); ++i) {
      if (stage.instructions[i].stream != Stream::compute) continue;
      for (const InstructionId id : stage.waits_of(stage.instructions[i])) {
        if (id >= stage.first_id) consumer_of[static_cast<std::size_t>(id - stage.first_id)] = ordinal[receiver][i];
        if (const auto earlier = received_before.find(id); earlier != received_before.end())
          earlier->second = std::min(earlier->second, ordinal[receiver][i]);
      }
    }
    for (std::size_t i = 0; i < stage.instructions.size(); ++i) {
      const Instruction& instruction = stage.instructions[i];
      if (is_recv(instruction.kind) && static_cast<std::size_t>(instruction.channel) == c)
        consumers.push_back(consumer_of[i]);
    }
    for (const auto& [id, consumer] : received_before) consumers.push_back(consumer);
    std::sort(consumers.begin(), consumers.end());
    auto sent = static_cast<std::int64_t>(program.before.messages[c].size() + received_before.size());
    most[c] = sent;
    for (std::size_t i = 0; i < program.stages[sender].instructions.size(); ++i) {
      const Instruction& instruction = program.stages[sender].instructions[i];
      if (!is_send(instruction.kind) || static_cast<std::size_t>(instruction.channel) != c) continue;
      ++sent;
      const std::uint32_t ended = known[graph.vertex(static_cast<StageIndex>(sender), i) * stages + receiver];
      const auto consumed = std::upper_bound(consumers.begin(), consumers.end(), ended) - consumers.begin();
      most[c] = std::max(most[c], sent - consumed);
    }
  }
  return most;
}

}  // namespace braid::planner
