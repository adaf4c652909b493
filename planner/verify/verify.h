#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/program/lower.h"
#include "planner/program/memory_walk.h"
#include "planner/program/program.h"

namespace braid::planner {

/// A rule that a Program breaks.
enum class Rule {
  ids,        ///< waits name earlier instructions; indices are in range
  messages,   ///< every receive has its send, in order, and every pass its messages
  groups,     ///< all members of a group issue the same meetings in the same order
  deadlock,   ///< nothing waits in a circle
  samples,    ///< every sample of every global batch exactly once, forward and backward, on every stage
  order,      ///< forward before backward; chunks of a sample forward in order, backward in reverse
  step_gate,  ///< a task's Step lies after its backwards and syncs, before its next global batch, batches in order
  boundary,   ///< what is under way at the end is what the boundary says
  memory      ///< every rank's memory suffices at every moment
};
std::string_view name(Rule rule);

struct Violation {
  Rule rule = Rule::ids;
  std::string message;
};

/// One sample that a global batch must hold.
struct ExpectedSample {
  std::int64_t sample = 0;
  std::int32_t tokens = 0;
};

/// What the Program is held against.
struct VerifyContext {
  /// The samples of a task's global batch, in their order.
  std::function<std::vector<ExpectedSample>(TaskIndex, std::int64_t)> expected;
  std::vector<TaskRules> tasks;
  MemoryContext memory;
  Bytes capacity = 0;  ///< of one rank; 0: not checked
};

/// The rules that `program` breaks; empty when it is good. Trusts nothing that lowering or cutting knows: reads the
/// lists and the boundaries alone.
std::vector<Violation> verify(const Program& program, const VerifyContext& context);

namespace detail {
void verify_ids(const Program& program, std::vector<Violation>& violations);
void verify_messages(const Program& program, std::vector<Violation>& violations);
void verify_groups(const Program& program, std::vector<Violation>& violations);
void verify_deadlock(const Program& program, std::vector<Violation>& violations);
void verify_samples(const Program& program, const VerifyContext& context, std::vector<Violation>& violations);
void verify_order(const Program& program, std::vector<Violation>& violations);
void verify_steps(const Program& program, const VerifyContext& context, std::vector<Violation>& violations);
void verify_boundary(const Program& program, std::vector<Violation>& violations);
void verify_memory(const Program& program, const VerifyContext& context, std::vector<Violation>& violations);
}  // namespace detail

}  // namespace braid::planner
