#include "planner/verify/verify.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "planner/program/dependency_graph.h"

namespace braid::planner {

std::string_view name(Rule rule) {
  constexpr std::array<std::string_view, 9> kNames = {"ids",   "messages",  "groups",   "deadlock", "samples",
                                                      "order", "step_gate", "boundary", "memory"};
  return kNames[static_cast<std::size_t>(rule)];
}

std::vector<Violation> verify(const Program& program, const VerifyContext& context) {
  std::vector<Violation> violations;
  // Each of these reads what the one before has found to be sound.
  detail::verify_ids(program, violations);
  if (!violations.empty()) return violations;
  detail::verify_messages(program, violations);
  detail::verify_groups(program, violations);
  if (!violations.empty()) return violations;
  detail::verify_deadlock(program, violations);
  detail::verify_order(program, violations);
  detail::verify_samples(program, context, violations);
  detail::verify_steps(program, context, violations);
  detail::verify_boundary(program, violations);
  if (violations.empty()) detail::verify_memory(program, context, violations);
  return violations;
}

namespace detail {

void verify_deadlock(const Program& program, std::vector<Violation>& violations) {
  const DependencyGraph graph(program);
  if (graph.topological_order()) return;
  std::string circle;
  for (const DependencyGraph::Place& place : graph.circle()) {
    const StageProgram& stage = program.stages[static_cast<std::size_t>(place.stage)];
    circle += fmt::format("{}stage {} {} {}", circle.empty() ? "" : ", ", place.stage,
                          name(stage.instructions[place.position].kind), stage.first_id + place.position);
  }
  violations.push_back({Rule::deadlock, "these wait for each other in a circle: " + circle});
}

void verify_memory(const Program& program, const VerifyContext& context, std::vector<Violation>& violations) {
  if (context.capacity <= 0) return;
  const std::vector<StageMemory> memories = walk_memory(program, context.memory);
  for (std::size_t s = 0; s < memories.size(); ++s) {
    if (memories[s].peak() <= context.capacity) continue;
    violations.push_back(
        {Rule::memory,
         fmt::format("replica {} stage {} needs {}, {} more than a rank has (backbone {}, adapters "
                     "{}, activations {}, messages {})",
                     program.stages[s].replica, program.stages[s].stage, describe_bytes(memories[s].peak()),
                     describe_bytes(memories[s].peak() - context.capacity), describe_bytes(memories[s].backbone),
                     describe_bytes(memories[s].adapters), describe_bytes(memories[s].activations),
                     describe_bytes(memories[s].messages))});
  }
}

}  // namespace detail
}  // namespace braid::planner
