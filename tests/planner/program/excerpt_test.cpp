#include "planner/program/excerpt.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/random_plans.h"
#include "planner/verify/verify.h"
#include "planner/window/program_stream.h"

namespace braid::planner {
namespace {

std::size_t count_of(const Program& program, Kind kind) {
  std::size_t count = 0;
  for (const StageProgram& stage : program.stages) {
    for (const Instruction& instruction : stage.instructions) count += instruction.kind == kind ? 1 : 0;
  }
  return count;
}

/// What `verify` asks of any Program, whichever samples it holds.
std::vector<Violation> broken_rules(const Program& program) {
  std::vector<Violation> violations;
  detail::verify_ids(program, violations);
  if (!violations.empty()) return violations;
  detail::verify_messages(program, violations);
  detail::verify_groups(program, violations);
  detail::verify_deadlock(program, violations);
  detail::verify_order(program, violations);
  return violations;
}

RC_GTEST_PROP(Excerpt, OfAnyWindowIsAProgramThatRuns, ()) {
  const testing::RandomPlan plan = testing::any_plan();
  const workload::SampleIndex samples(plan.workload.tasks, plan.sizes);
  const Program whole = window_program(plan.fixed, {plan.workload, samples}, 0);
  const auto count = *rc::gen::inRange<std::int64_t>(1, static_cast<std::int64_t>(whole.microbatches.size()) + 2);
  const Program part = excerpt(whole, count);
  const std::vector<Violation> violations = broken_rules(part);
  RC_ASSERT(violations.empty());
  RC_ASSERT(!part.microbatches.empty());
  RC_ASSERT(count_of(part, Kind::step) > 0u);
  // Whole samples apart, so many of each replica.
  const auto replicas = static_cast<std::int64_t>(plan.fixed.deployment.size());
  if (plan.fixed.batching.chunk_size == 0)
    RC_ASSERT(static_cast<std::int64_t>(part.microbatches.size()) <= std::max<std::int64_t>(count, 1) * replicas);
}

RC_GTEST_PROP(Excerpt, OfAllMicrobatchesIsTheWhole, ()) {
  const testing::RandomPlan plan = testing::any_plan();
  const workload::SampleIndex samples(plan.workload.tasks, plan.sizes);
  const Program whole = window_program(plan.fixed, {plan.workload, samples}, 0);
  const Program same = excerpt(whole, static_cast<std::int64_t>(whole.microbatches.size()));
  RC_ASSERT(same.microbatches == whole.microbatches);
  for (std::size_t s = 0; s < whole.stages.size(); ++s) {
    RC_ASSERT(same.stages[s].instructions.size() == whole.stages[s].instructions.size());
    RC_ASSERT(same.stages[s].waits == whole.stages[s].waits);
  }
}

}  // namespace
}  // namespace braid::planner
